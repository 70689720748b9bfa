/** Columns of a domain `Approval`; `approvalTables` says what they come from. */
export const approvalColumns = `
  a.id, r.id AS runId, s.id AS sessionId, c.call_id AS callId, c.tool, c.arguments, a.reason, a.pattern,
  a.state, a.decided_by AS decidedBy, a.created_at AS createdAt, a.decided_at AS decidedAt,
  a.expires_at AS expiresAt`;

export const approvalTables = `
  approvals a
  JOIN runs r ON r.key = a.run
  JOIN sessions s ON s.key = a.session
  JOIN calls c ON c.run = a.run AND c.step = a.step AND c.position = a.position`;
