// A Prisma generator that writes Prisma's model of a schema to a file: `node dmmf-generator.ts FILE`.
// Prisma sends lines of JSON-RPC requests to standard input and reads the responses from standard error.
import { writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'

const [file = ''] = process.argv.slice(2)

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line) as {
    id: number
    method: string
    params: { dmmf?: { datamodel: unknown } }
  }
  if (method === 'generate') await writeFile(file, JSON.stringify(params.dmmf?.datamodel))
  const result = method === 'getManifest' ? { manifest: { prettyName: 'the data model', defaultOutput: '.' } } : null
  process.stderr.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`)
}
