/** Prints the closing line of a test run from vitest's JSON report: `N passed, N failed, N skipped`. */
import { readFileSync } from "node:fs";

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numFailedTestSuites: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
}

const [file] = process.argv.slice(2);
if (file === undefined) throw new Error("usage: node scripts/summary.ts REPORT");
const report: Report = JSON.parse(readFileSync(file, "utf8"));
// A file that does not even load has no failed test of its own, and a run without tests has failed as a whole.
const failedFiles = report.numPassedTests === 0 ? 1 : Math.min(1, report.numFailedTestSuites);
const failed = Math.max(report.numFailedTests, failedFiles);
console.log(
  `${report.numPassedTests} passed, ${failed} failed, ${report.numPendingTests + report.numTodoTests} skipped`,
);
