// Runs as a user that is not root: starts an executor, and prints its confinement and the state of its process.
import { readFile } from 'node:fs/promises'
import { findConfinement } from '#tenant-runtime/functions/executor/confinement.ts'
import { Executor } from '#tenant-runtime/functions/executor/executor.ts'
import { command, constant, drop, grow } from './wasm.ts'

const executor = await Executor.start()
const bytes = command({ memory: [0, 1], code: [...constant(8_000), ...grow, drop] })
const { outcome, memoryPeak } = await executor.run({
  module: { key: 'grows', bytes, memory: undefined, reachesOut: false },
  memoryPages: 8_192,
  environment: [],
  name: 'test',
  input: Buffer.alloc(0),
  timeoutMilliseconds: 10_000,
  onLog: () => undefined,
})
const status = await readFile(`/proc/${executor.pid ?? 0}/status`, 'utf8')
process.stdout.write(
  JSON.stringify({ confinement: await findConfinement(), outcome, memoryPeak, status, uid: process.getuid?.() }),
)
executor.kill()
await executor.exited
