// Runs in the place of an executor, and prints what it can reach. Its settings come on standard input.
import { spawn } from 'node:child_process'
import { Buffer } from 'node:buffer'
import { readFileSync, readSync, readdirSync, writeFileSync } from 'node:fs'
import { createServer, connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { setInterval } from 'node:timers'
import { Worker } from 'node:worker_threads'

const settings = Buffer.alloc(65_536)
const { port, secret, others, writable } = JSON.parse(settings.toString('utf8', 0, readSync(0, settings)))

const attempt = (work) => {
  try {
    return work() ?? 'done'
  } catch (error) {
    return error.code ?? error.message
  }
}
const settled = (start) =>
  new Promise((resolve) => {
    try {
      start(resolve)
    } catch (error) {
      resolve(error.code)
    }
  })

const report = {
  environment: process.env,
  uid: attempt(() => process.getuid()),
  interfaces: attempt(
    () =>
      Object.values(networkInterfaces())
        .flat()
        .filter(({ internal }) => !internal).length,
  ),
  connect: await settled((resolve) =>
    connect(port, '127.0.0.1', () => resolve('connected')).on('error', (error) => resolve(error.code)),
  ),
  listen: await settled((resolve) => {
    // Node reports this denial from a callback.
    process.once('uncaughtException', (error) => resolve(error.code))
    createServer()
      .on('error', (error) => resolve(error.code))
      .listen(0, '127.0.0.1', () => resolve('listens'))
  }),
  readSecret: attempt(() => readFileSync(secret, 'utf8')),
  write: attempt(() => writeFileSync(writable, 'x')),
  signal: others.map((pid) => attempt(() => process.kill(pid, 0))),
  processes: attempt(() => readdirSync('/proc').filter((name) => /^\d+$/.test(name)).length),
  spawn: await settled((resolve) =>
    spawn('/bin/true')
      .on('error', (error) => resolve(error.code))
      .on('exit', () => resolve('ran')),
  ),
  worker: attempt(() => (process.permission === undefined ? 'not tried' : new Worker('', { eval: true }).threadId)),
  // oxlint-disable-next-line typescript/no-implied-eval -- the probe tests that this is denied
  code: attempt(() => new Function('return 1')()),
}
process.stdout.write(JSON.stringify(report))
// The probe stays alive, so that tests can read the state of its process.
setInterval(() => undefined, 60_000)
