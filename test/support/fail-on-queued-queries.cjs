// Ends a process that sends a query on a connection of node-postgres whose queries are still waiting. The process would work
// today, with a warning, and no longer with the next major version. Loaded into all processes of a test run (scripts/test.ts).
process.on('warning', (warning) => {
  if (warning.message.startsWith('Calling client.query() when the client is already executing a query')) throw warning
})
