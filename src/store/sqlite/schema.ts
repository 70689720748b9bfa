/**
 * The first schema. Sessions and runs have a small integer key, so that the rows that are written on every turn
 * repeat no long id. `messages` and `events` are clustered by (session, seq): a history is one range of pages.
 * The partial indexes hold open work only: what a restart has to look at does not grow with the history.
 */
export const initialSchema = `
CREATE TABLE sessions (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  principal TEXT NOT NULL,
  agent TEXT NOT NULL,
  channel TEXT NOT NULL,
  ephemeral INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  start_seq INTEGER NOT NULL DEFAULT 0,  -- the model sees messages from here
  next_seq INTEGER NOT NULL DEFAULT 0,   -- seq of the next message
  last_event INTEGER NOT NULL DEFAULT 0, -- seq of the last event
  open_calls TEXT                        -- JSON array of call ids that the client has to answer; NULL: none
) STRICT;
CREATE INDEX sessions_by_principal ON sessions(principal);

CREATE TABLE runs (
  key INTEGER PRIMARY KEY,               -- order of acceptance
  id TEXT NOT NULL UNIQUE,
  session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
  principal TEXT NOT NULL,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL,
  state TEXT NOT NULL,
  ephemeral INTEGER NOT NULL,
  keyed INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  active_ms INTEGER NOT NULL DEFAULT 0,
  first_event INTEGER NOT NULL,
  last_event INTEGER,                    -- set when the run has ended
  open_step INTEGER,                     -- step with calls that nobody has answered yet
  approval TEXT,                         -- the question it waits for
  finish_reason TEXT,
  output TEXT,
  output_seq INTEGER,                    -- or: the output is the content of this message
  client_calls TEXT,
  error TEXT,
  usage TEXT,
  input_seq INTEGER,                     -- the input's messages, once they are in the history
  input_count INTEGER,
  message_ids TEXT,                      -- ids for the input's messages while the run is queued
  input TEXT NOT NULL,                   -- RunInput as JSON, without its messages
  conversation TEXT                      -- its messages, one JSON a line: while queued, and of ephemeral runs
) STRICT;
CREATE INDEX runs_by_session ON runs(session);
CREATE INDEX runs_by_principal ON runs(principal);
CREATE INDEX runs_queued ON runs(session) WHERE state = 'queued';
CREATE UNIQUE INDEX runs_active ON runs(session) WHERE state IN ('running', 'waiting', 'retrying');
CREATE INDEX runs_expendable ON runs(ended_at) WHERE ephemeral = 1 AND ended_at IS NOT NULL;

CREATE TABLE messages (
  session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  id TEXT NOT NULL,
  run INTEGER,
  created_at INTEGER NOT NULL,
  attachments INTEGER NOT NULL,
  extra TEXT,                            -- what only one provider understands, JSON
  wire BLOB NOT NULL,                    -- ready-made JSON
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  run INTEGER,
  ts INTEGER NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (session, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE steps (
  run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  message_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  settled INTEGER NOT NULL,              -- every server call has its result
  message_seq INTEGER,                   -- where it joined the history; wire and extra are there then
  wire BLOB,
  extra TEXT,
  PRIMARY KEY (run, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE calls (
  run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE,
  step INTEGER NOT NULL,
  position INTEGER NOT NULL,
  call_id TEXT NOT NULL,
  tool TEXT NOT NULL,
  effect TEXT NOT NULL,
  client INTEGER NOT NULL,
  state TEXT NOT NULL,
  approved INTEGER NOT NULL,
  started_at INTEGER,                    -- kept after the call has settled: it may have had an effect
  ok INTEGER,
  result TEXT,
  message_seq INTEGER,                   -- or: the result is the content of this message
  arguments TEXT NOT NULL,               -- scrubbed
  raw TEXT,                              -- as the model wrote them, where they differ; NULL once settled
  PRIMARY KEY (run, step, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX calls_of_clients ON calls(call_id) WHERE client = 1;

CREATE TABLE approvals (
  key INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  run INTEGER NOT NULL REFERENCES runs(key) ON DELETE CASCADE,
  session INTEGER NOT NULL,
  step INTEGER NOT NULL,
  position INTEGER NOT NULL,
  reason TEXT NOT NULL,
  pattern TEXT,
  state TEXT NOT NULL,
  decided_by TEXT,
  created_at INTEGER NOT NULL,
  decided_at INTEGER,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX approvals_by_run ON approvals(run);
CREATE UNIQUE INDEX approvals_pending ON approvals(session) WHERE state = 'pending';
CREATE INDEX approvals_due ON approvals(expires_at) WHERE state = 'pending';

CREATE TABLE grants (
  session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
  tool TEXT NOT NULL,
  pattern TEXT NOT NULL,
  PRIMARY KEY (session, tool, pattern)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  token TEXT NOT NULL,
  route TEXT NOT NULL,
  key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  run TEXT NOT NULL,                     -- the run's id; the run may be gone
  created_at INTEGER NOT NULL,
  PRIMARY KEY (token, route, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_by_age ON idempotency(created_at);

CREATE TABLE tokens (
  key INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  hash TEXT NOT NULL UNIQUE,
  scopes TEXT NOT NULL,
  agent TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  revoked_at INTEGER
) STRICT;
CREATE UNIQUE INDEX tokens_live ON tokens(name) WHERE revoked_at IS NULL;

CREATE TABLE attachments (
  id TEXT PRIMARY KEY,                   -- SHA-256 of the bytes, hex
  mime TEXT NOT NULL,
  size INTEGER NOT NULL,
  put_at INTEGER                         -- NULL: kept for good
) STRICT, WITHOUT ROWID;

CREATE TABLE attachment_uses (
  session INTEGER NOT NULL REFERENCES sessions(key) ON DELETE CASCADE,
  attachment TEXT NOT NULL,
  PRIMARY KEY (session, attachment)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachment_uses_by_attachment ON attachment_uses(attachment);

CREATE TABLE kv (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
`;
