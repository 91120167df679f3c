// deploy/tenantry.service: systemd accepts it, its paths exist, and its options are those of `npm start`.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { configurationExitCode } from '@tenantry/contract'
import t from 'tap'
import { parseOptions } from '#local/options.ts'

const project = new URL('../../', import.meta.url).pathname.replace(/\/$/, '')
const analyzer = '/usr/bin/systemd-analyze'
/** The directory of the code in the unit. */
const code = '/opt/tenantry'
const unit = await readFile(join(project, 'deploy/tenantry.service'), 'utf8')
const lines = unit.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

/** Returns the values of a key of the unit. */
function values(key: string): string[] {
  return lines.filter((line) => line.startsWith(`${key}=`)).map((line) => line.slice(key.length + 1))
}

t.test('Each line is a section, or a key that occurs once', (t) => {
  const keys = lines
    .filter((line) => !/^\[(?:Unit|Service|Install)\]$/.test(line))
    .map((line) => line.split('=')[0] ?? '')
  for (const key of keys) t.match(key, /^[A-Z][A-Za-z]+$/)
  t.equal(new Set(keys).size, keys.length)
  t.end()
})

t.test('The unit runs the program of npm start with valid options and existing files', async (t) => {
  const { scripts } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8')) as {
    scripts: { start: string }
  }
  const [command = '', ...args] = values('ExecStart').join(' ').split(' ')
  t.ok(existsSync(command.replace(code, project)), 'the clone has its own Node')
  t.equal(`exec node ${args[0] ?? ''}`, scripts.start)
  t.same(values('WorkingDirectory'), [code])
  t.match(parseOptions(args.slice(1), { cwd: code, cores: 2 }), {
    data: `/var/lib/${values('StateDirectory').join('')}`,
    port: 4400,
  })
  for (const page of values('Documentation').join(' ').split(' '))
    t.ok(existsSync(page.replace(`file:${code}`, project)), page)
})

t.test('systemd restarts it, except after an error that no restart can correct', (t) => {
  t.same(values('Restart'), ['always'])
  t.same(values('StartLimitIntervalSec'), ['0'])
  t.same(values('RestartPreventExitStatus'), [`2 ${configurationExitCode}`])
  t.same(values('KillMode'), ['mixed'], 'the supervisor stops its services, and nothing remains after it')
  t.same(values('OOMPolicy'), ['continue'])
  for (const breaking of [
    'RestrictNamespaces',
    'PrivateUsers',
    'ProtectProc',
    'ProtectKernelTunables',
    'ProtectKernelLogs',
  ])
    t.same(values(breaking), [], `${breaking} would prevent the namespaces of functions`)
  t.end()
})

t.test('systemd-analyze accepts the unit where it is installed', async (t) => {
  if (!existsSync(analyzer)) return
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-unit-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const file = join(directory, 'tenantry.service')
  // It checks that the command exists.
  await writeFile(file, unit.replaceAll(code, project))
  const { stdout, stderr } = await promisify(execFile)(analyzer, ['verify', '--man=no', file])
  t.same([stdout, stderr], ['', ''])
  await writeFile(file, unit.replaceAll(code, project).replace('Restart=always', 'Restart=sometimes'))
  const wrong = await promisify(execFile)(analyzer, ['verify', '--man=no', file])
  t.match(wrong.stderr, /sometimes/, 'it reports an invalid value')
})
