// Sends requests in a process of its own, so that what the benchmark's process does meanwhile does not count.
// `node reading.ts PORT CONNECTIONS MILLISECONDS [STATUS]` sends the requests in REQUESTS (base64, with spaces between them) in
// turn. It prints a LoadResult with `cpu`, the microseconds of processor time.
import { load } from './load.ts'

const [port = 0, connections = 1, milliseconds = 0, status = 200] = process.argv.slice(2).map(Number)
const requests = (process.env['REQUESTS'] ?? '').split(' ').map((text) => Buffer.from(text, 'base64'))
let sent = 0
const request = () => requests[sent++ % requests.length] ?? Buffer.alloc(0)
const before = process.cpuUsage()
const result = await load({ port, connections, milliseconds, status, request })
const { user, system } = process.cpuUsage(before)
console.log(JSON.stringify({ ...result, cpu: user + system }))
