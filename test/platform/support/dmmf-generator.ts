// A Prisma generator that writes down how Prisma itself understands a schema: `node dmmf-generator.ts FILE`.
// Prisma asks with lines of JSON-RPC on standard input and is answered on standard error.
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
