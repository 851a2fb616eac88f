// A reporter of node:test: one line of JSON for each test that ran. tests/older.test.ts reads them.

export default async function* outcomes(events) {
  for await (const { type, data } of events) {
    if ((type !== "test:pass" && type !== "test:fail") || data.skip !== undefined) continue;
    const error = type === "test:fail" ? describe(data.details.error) : undefined;
    yield `${JSON.stringify({ outcome: { name: data.name, error } })}\n`;
  }
}

function describe(error) {
  const cause = error.cause ?? error;
  return String(cause.stack ?? cause).slice(0, 4000);
}
