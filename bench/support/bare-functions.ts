// The floor of invocations: a bare Node HTTP server in front of the runtime's own executors, without tenants, tokens,
// limits or records. `node bare-functions.ts MODULE EXECUTORS` runs the module in that file for every request and prints
// `{"port"}`.
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import { Executor } from '#tenant-runtime/functions/executor/executor.ts'
import { prepareModule } from '#tenant-runtime/functions/module/module-cache.ts'
import { functionEnvironment } from './function-environment.ts'

const [file = '', count = '1'] = process.argv.slice(2)
const module = prepareModule(await readFile(file), 'bare')
const idle = await Promise.all(Array.from({ length: Number(count) }, () => Executor.start()))
const waiting: ((executor: Executor) => void)[] = []

async function body(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks)
}

async function result(input: Buffer): Promise<Buffer> {
  const executor = idle.pop() ?? (await new Promise<Executor>((resolve) => waiting.push(resolve)))
  try {
    const { outcome, output } = await executor.run({
      module,
      memoryPages: 2_048,
      environment: functionEnvironment,
      name: 'bare',
      input,
      timeoutMilliseconds: 10_000,
      onLog: () => undefined,
    })
    if (outcome.kind !== 'exited' || outcome.code !== 0)
      throw new Error(`The run did not exit with code 0. Outcome: ${outcome.kind}`)
    return output
  } finally {
    const next = waiting.shift()
    if (next === undefined) idle.push(executor)
    else next(executor)
  }
}

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  void body(request)
    .then(result)
    .then(
      (output) =>
        response
          .writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': output.length })
          .end(output),
      (error: unknown) => response.writeHead(500, { 'content-length': 0 }).end(() => console.error(error)),
    )
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  console.log(JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined }))
})
process.on('SIGTERM', () => process.exit(0))
