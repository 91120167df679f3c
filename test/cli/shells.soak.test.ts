// The command as a process of its own: completion in real shells, Ctrl-C, and what is typed at a terminal.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { ensureShells } from '#scripts/shells.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

const project = new URL('../../', import.meta.url).pathname
await ensureShells()
const api = await startApi(t, { cloud: true })
const url = await api.app.listen({ host: '127.0.0.1', port: 0 })
const directory = await mkdtemp(join(tmpdir(), 'tenantry-cli-'))
t.teardown(() => rm(directory, { recursive: true, force: true }))
const env = {
  ...process.env,
  PATH: `${join(project, 'node_modules/.bin')}:${process.env.PATH ?? ''}`,
  HOME: directory,
  XDG_CONFIG_HOME: directory,
  TENANTRY_URL: url,
  TENANTRY_KEY: api.keys.admin,
}
for (const name of ['acme', 'acorn', 'globex']) await api.create(name)

/** Runs a program and returns its output. @throws Error if it fails */
async function output(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args, { env, cwd: project, timeout: 60_000 })
  return stdout
}

/** Lines that a user types, each with the candidates that a shell must show. */
const completions: readonly (readonly [typed: string, candidates: readonly string[]])[] = [
  ['tenantry rol', ['rollouts']],
  ['tenantry tenants re', ['restart', 'restore', 'resume']],
  ['tenantry tenants get ac', ['acme', 'acorn']],
  ['tenantry --json tenants list --plan P', ['Pro']],
  ['tenantry tenants list --reg', ['--region']],
  ['tenantry completion ', ['bash', 'fish', 'zsh']],
  ['tenantry hosts ', ['get', 'list']],
  ['tenantry hosts get lo', ['local']],
  ['tenantry drift re', ['repair']],
  ['tenantry drift ac', ['acme', 'acorn']],
  ['tenantry drift repair gl', ['globex']],
]

t.test('bash completes commands, options and names of tenants', async (t) => {
  const script =
    'source <(tenantry completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tenantry; ' +
    `printf '%s\\n' "\${COMPREPLY[@]}"`
  for (const [typed, candidates] of completions) {
    const found = await output('bash', '--norc', '-c', script, 'bash', ...typed.split(' '))
    t.same(found.trim().split('\n').toSorted(), candidates, typed)
  }
  t.match(await output('bash', '--norc', '-c', 'source <(tenantry completion bash); complete -p tenantry'), /_tenantry/)
})

t.test('fish completes commands, options and names of tenants', async (t) => {
  for (const [typed, candidates] of completions) {
    const found = await output('fish', '-c', `tenantry completion fish | source; complete -C '${typed}'`)
    const names = found
      .trim()
      .split('\n')
      .map((line) => line.split('\t')[0])
    t.same(names.toSorted(), candidates, typed)
  }
})

t.test('zsh completes what is typed at its line editor', async (t) => {
  const result = join(directory, 'buffer')
  const setup =
    'autoload -Uz compinit && compinit -u -D; source <(tenantry completion zsh); ' +
    `check() { zle complete-word; print -r -- "$BUFFER" > ${result}; BUFFER=exit; zle accept-line }; ` +
    "zle -N check; bindkey '^X' check"
  const driver =
    'zmodload zsh/zpty; zpty shell zsh -f -i; zpty -w shell "$1"; zpty -w -n shell "$2"$\'\\x18\'; ' +
    'while zpty -r shell line; do :; done'
  for (const [typed, completed] of [
    ['tenantry tenants get gl', 'tenantry tenants get globex '],
    ['tenantry rol', 'tenantry rollouts '],
    ['tenantry tenants get a', 'tenantry tenants get ac'],
    ['tenantry tenants list --reg', 'tenantry tenants list --region '],
    ['tenantry tenants re', 'tenantry tenants res'],
    ['tenantry --json tenants list --plan P', 'tenantry --json tenants list --plan Pro '],
    ['tenantry completion f', 'tenantry completion fish '],
    ['tenantry hosts g', 'tenantry hosts get '],
    ['tenantry hosts get lo', 'tenantry hosts get local '],
    ['tenantry drift re', 'tenantry drift repair '],
    ['tenantry drift a', 'tenantry drift ac'],
    ['tenantry drift repair gl', 'tenantry drift repair globex '],
  ] as const) {
    await rm(result, { force: true })
    await output('zsh', '-f', '-c', driver, 'zsh', setup, typed)
    t.equal(await readFile(result, 'utf8'), `${completed}\n`, typed)
  }
})

t.test('An unknown shell is rejected, and a completion without a connection prints nothing', async (t) => {
  await t.rejects(output('tenantry', 'completion', 'tcsh'), { code: 2, stderr: /Allowed: bash, zsh, fish/ })
  const { stdout, stderr } = await promisify(execFile)('tenantry', ['__complete', '--', 'tenants', 'get', ''], {
    env: { ...env, TENANTRY_URL: 'http://127.0.0.1:1' },
  })
  t.same([stdout, stderr], ['', ''])
})

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  t.test(`${signal} ends the command, shows the keys, and leaves the operation running`, async (t) => {
    const { promise: gate, resolve: open } = Promise.withResolvers<undefined>()
    api.engine.gate = gate
    const name = `initech-${signal.toLowerCase()}`
    const create = ['tenants', 'create', name, '--plan', 'Pro', '--region', 'cloud', '--json']
    const child = spawn('tenantry', create, { env, stdio: ['ignore', 'pipe', 'pipe'] })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (stderr === '') child.kill(signal)
      stderr += text
    })
    await once(child, 'close')
    t.equal(child.exitCode, 130)
    t.match(JSON.parse(stdout), { name, keys: { secret_key: /^tn_secret_/ } })
    const id = /tenantry operations follow ([0-9a-f-]{36})/.exec(stderr)?.[1] ?? ''
    const isRunning = async () =>
      ((await api.call('GET', `/v1/operations/${id}`)).body as { state: string }).state === 'running'
    await until(isRunning, 'an operation in progress')
    open(undefined)
    t.match(await output('tenantry', 'operations', 'follow', id, '--json'), /"state":"succeeded"/)
  })

/** Runs a command at a terminal, and types a line at its prompt. */
async function typed(command: string, line: string): Promise<{ code: number | null; text: string }> {
  const child = spawn('script', ['-qec', command, '/dev/null'], { env, stdio: 'pipe' })
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    const hadPrompt = text.includes(': ')
    text += chunk
    if (!hadPrompt && text.includes(': ')) child.stdin.write(`${line}\r`)
  })
  await once(child, 'close')
  return { code: child.exitCode, text }
}

t.test('At a terminal, a deletion reads the name, and another text deletes nothing', async (t) => {
  t.equal((await typed('tenantry tenants delete acorn --no-wait', 'acme')).code, 2)
  t.match(await output('tenantry', 'tenants', 'get', 'acorn', '--json'), /"status":"(ready|pending)"/)
  const deleted = await typed('tenantry tenants delete acorn --no-wait', 'acorn')
  t.equal(deleted.code, 0, deleted.text)
  t.match(await output('tenantry', 'tenants', 'get', 'acorn', '--json'), /"status":"deleting"/)
})

t.test('At a terminal, a login reads the key without showing it', async (t) => {
  const command = `env -u TENANTRY_KEY tenantry login --url ${url} --name typed`
  const { code, text } = await typed(command, api.keys.read)
  t.equal(code, 0, text)
  t.notMatch(text, api.keys.read)
  const file = join(directory, 'tenantry/config.json')
  t.match(await readFile(file, 'utf8'), api.keys.read)
  t.equal((await stat(file)).mode & 0o777, 0o600)
  await chmod(file, 0o644)
  t.match(await output('tenantry', 'doctor', '--json', '--context', 'typed'), /"status":"warning".*chmod 600/)
  t.match(
    await output('tenantry', 'doctor', '--json', '--context', 'typed'),
    /"backups","status":"warning".*backup target/,
  )
  await writeFile(file, '{"contexts": []}')
  await t.rejects(output('tenantry', 'context', 'list'), { code: 1, stderr: /not a valid list of contexts/ })
  await rm(file)
})

t.test('npx and npm run start the command in the repository without a build', async (t) => {
  t.match(await output('npx', '--no-install', 'tenantry', 'plans', '--json'), /^\{"id":"Free"/)
  t.match(await output('npm', 'run', '-s', '--ignore-scripts', 'tenantry', '--', 'plans', '--json'), /^\{"id":"Free"/)
})
