// Prepares a fresh clone: packages, the generated database client, tap's build, the web console, the executors' program. It is plain
// JavaScript without the project's own modules, because it runs on any version of Node. It does nothing if nothing has
// changed.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const recordFile = join(root, 'node_modules', '.tenantry-setup.json')

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

/** Returns all files below a folder. */
function filesBelow(folder) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(root, join(parentPath, name)))
    .sort()
}

function readRecord() {
  try {
    return JSON.parse(readFileSync(recordFile, 'utf8'))
  } catch {
    return {}
  }
}

/** Whether the packages exist that npm installs in the folders of workspaces, because the root has another version. */
function hasWorkspacePackages() {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  return Object.entries(packages)
    .filter(([path, { optional }]) => /^(?!node_modules\/).+\/node_modules\//.test(path) && !optional)
    .every(([path]) => existsSync(join(root, path, 'package.json')))
}

/** Runs `work` if `fingerprint` differs from the one that the last successful run recorded under `name`. */
function step(name, expected, ready, work) {
  const done = readRecord()
  if (done[name] === expected && ready) return
  console.error(`setup: ${name}`)
  work()
  writeFileSync(recordFile, JSON.stringify({ ...readRecord(), [name]: expected }))
}

/** Runs a command. Its output goes to standard error, because standard output belongs to the command that follows. */
function run(command, args, env = {}) {
  execFileSync(command, args, { cwd: root, stdio: ['ignore', 2, 2], env: { ...process.env, ...env } })
}

const node = join(root, 'node_modules', '.bin', 'node')
const bin = (path) => join(root, 'node_modules', path)

try {
  step('packages', fingerprint('package-lock.json'), existsSync(node) && hasWorkspacePackages(), () =>
    run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']),
  )
  step(
    'database client',
    fingerprint('prisma/schema.prisma', 'package-lock.json'),
    existsSync(join(root, 'prisma/client/client.ts')),
    () =>
      // The engine in this variable would otherwise be downloaded, and a client can be generated without it.
      run(node, [bin('prisma/build/index.js'), 'generate'], {
        PRISMA_SCHEMA_ENGINE_BINARY: node,
        PRISMA_HIDE_UPDATE_MESSAGE: '1',
      }),
  )
  step('test runner', fingerprint('.taprc', 'package-lock.json'), true, () =>
    run(node, [bin('tap/dist/esm/run.mjs'), 'build']),
  )
  step(
    'console',
    fingerprint(...filesBelow('console/src'), 'console/build.mjs', 'package-lock.json'),
    existsSync(join(root, 'console/built/index.html')),
    () => run(node, ['console/build.mjs']),
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
