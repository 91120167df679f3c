// Reads in a process of its own, so that what the benchmark's process does meanwhile does not count.
// `node reading.ts PORT CONNECTIONS MILLISECONDS` sends the request in REQUEST (base64) and prints a LoadResult.
import { load } from './load.ts'

const [port, connections, milliseconds] = process.argv.slice(2).map(Number)
const result = await load({
  port: port ?? 0,
  connections: connections ?? 1,
  milliseconds: milliseconds ?? 0,
  request: Buffer.from(process.env['REQUEST'] ?? '', 'base64'),
})
console.log(JSON.stringify(result))
