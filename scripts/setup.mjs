// Makes a fresh clone runnable: packages, the generated database client, tap's build, the executors' program. Plain
// JavaScript without imports of ours, because it runs on whatever Node the machine has. Does nothing when nothing has changed.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const marks = join(root, 'node_modules', '.tenantry-setup.json')

function fingerprint(...files) {
  const hash = createHash('sha256')
  for (const file of files) hash.update(readFileSync(join(root, file)))
  return hash.digest('hex')
}

function filesOf(folder) {
  const path = join(root, folder)
  return existsSync(path)
    ? readdirSync(path)
        .filter((name) => name.endsWith('.ts'))
        .sort()
        .map((name) => join(folder, name))
    : []
}

function readMarks() {
  try {
    return JSON.parse(readFileSync(marks, 'utf8'))
  } catch {
    return {}
  }
}

/** Runs `work` when `wanted` differs from what the last complete run recorded under `name`. */
function step(name, wanted, ready, work) {
  const done = readMarks()
  if (done[name] === wanted && ready) return
  console.error(`setup: ${name}`)
  work()
  writeFileSync(marks, JSON.stringify({ ...readMarks(), [name]: wanted }))
}

/** Output goes to standard error: standard output belongs to the command that this precedes. */
function run(command, args, env = {}) {
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], env: { ...process.env, ...env } })
}

const node = join(root, 'node_modules', '.bin', 'node')
const bin = (path) => join(root, 'node_modules', path)

try {
  step('packages', fingerprint('package-lock.json'), existsSync(node), () =>
    run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']),
  )
  step(
    'database client',
    fingerprint('prisma/schema.prisma', 'package-lock.json'),
    existsSync(join(root, 'prisma/client/client.ts')),
    () =>
      // The engine named here would be downloaded, and is not needed to generate a client.
      run(node, [bin('prisma/build/index.js'), 'generate'], {
        PRISMA_SCHEMA_ENGINE_BINARY: node,
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
      }),
  )
  step('test runner', fingerprint('.taprc', 'package-lock.json'), true, () =>
    run(node, [bin('tap/dist/esm/run.mjs'), 'build']),
  )
  const program = ['executor', 'module', 'host'].flatMap((folder) => filesOf(`tenant-runtime/src/functions/${folder}`))
  step(
    'executor',
    fingerprint(...program, 'scripts/build-executor.mjs', 'package-lock.json'),
    existsSync(join(root, 'tenant-runtime/built/executor.mjs')),
    () => run(node, ['scripts/build-executor.mjs']),
  )
} catch (cause) {
  console.error(`setup failed: ${cause.message}`)
  process.exit(1)
}
