// Ends a process that sends a query on a node-postgres connection which still runs another query. node-postgres only warns
// of that today, and its next major version rejects it. scripts/test.ts loads this file into all processes of a test run.
process.on('warning', (warning) => {
  if (warning.message.startsWith('Calling client.query() when the client is already executing a query')) throw warning
})
