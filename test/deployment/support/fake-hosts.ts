// A `docker` of the test for several hosts: containers, volumes and networks are lines in a file for each engine, and networks of the
// swarm are in one file for all.
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

/** An object of an engine. */
export interface FakeObject {
  name: string
  labels?: Readonly<Record<string, string>>
  /** Subnet of a network. */
  subnet?: string
  /** Number of attempts to remove a network that fail. */
  failures?: number
}

/** Objects of an engine, or those that all engines have. */
export type FakeObjects = Partial<Record<'container' | 'volume' | 'network', readonly FakeObject[]>>

/** The program, which finds the objects of its engine next to itself. */
const program = `#!${process.execPath}
const { appendFileSync, readFileSync, writeFileSync } = require('node:fs')
const directory = require('node:path').dirname(require('node:path').dirname(__filename))
const host = process.env.DOCKER_HOST
const args = process.argv.slice(2)
appendFileSync(directory + '/calls', host + ' ' + args.join(' ') + '\\n')
const file = (kind) => directory + '/' + (kind === 'network' ? 'all' : host.replaceAll('/', '_'))
const read = (kind) => JSON.parse(readFileSync(file(kind), 'utf8'))[kind] ?? []
const write = (kind, objects) =>
  writeFileSync(file(kind), JSON.stringify({ ...JSON.parse(readFileSync(file(kind), 'utf8')), [kind]: objects }))
const filters = args.flatMap((arg, at) => (args[at - 1] === '--filter' ? [arg] : []))
const matches = ({ name, labels = {} }) =>
  filters.every((filter) => {
    const [, field, key, , value] = /^(label|name)=([^=]*)(=(.*))?$/.exec(filter)
    return field === 'name' ? name.includes(key) : labels[key] === value
  })
const print = (lines) => process.stdout.write(lines.map((line) => line + '\\n').join(''))
const end = (message) => {
  process.stderr.write(message + '\\n')
  process.exit(1)
}
const format = args[args.indexOf('--format') + 1] ?? ''
const list = (kind) =>
  print(read(kind).filter(matches).map(({ name, labels }) => (format.includes('tenantry.stack') ? labels['tenantry.stack'] : name)))
const found = (kind, names) => names.map((name) => read(kind).find((one) => one.name === name) ?? end('no such ' + kind + ': ' + name))
const remove = (kind, names) => {
  for (const one of found(kind, names)) {
    if (one.failures > 0) {
      write(kind, read(kind).map((each) => (each.name === one.name ? { ...each, failures: each.failures - 1 } : each)))
      end('network ' + one.name + ' is in use')
    }
    write(kind, read(kind).filter(({ name }) => name !== one.name))
  }
}
const names = args.slice(2).filter((arg, at, all) => !arg.startsWith('--') && all[at - 1] !== '--format')
const [command, action] = args
if (command === 'info') {
  if (host.includes('silent')) end('no engine')
  print(['node-of-' + host.replace('again', '')])
} else if (command === 'ps') list('container')
else if (command === 'rm') remove('container', args.slice(1).filter((arg) => !arg.startsWith('--')))
else if (command === 'image') print(['tenantry/postgres:latest'])
else if (command === 'compose' && args.includes('down'))
  for (const kind of ['container', 'volume'])
    write(kind, read(kind).filter(({ labels = {} }) => labels['com.docker.compose.project'] !== 'tenantry'))
else if (action === 'ls') list(command)
else if (action === 'rm') remove(command, names)
else if (action === 'inspect')
  print(
    found(command, names).map(({ labels = {}, subnet }) =>
      format.includes('Subnet') ? subnet : (labels[format.includes('tenantry.stack') ? 'tenantry.stack' : 'tenantry.installation'] ?? ''),
    ),
  )
`

/** Writes the program and the objects of the engines. @returns what the engines have then, and all calls */
export async function openFakeHosts(
  directory: string,
  engines: Readonly<Record<string, FakeObjects>>,
  networks: readonly FakeObject[],
) {
  const bin = join(directory, 'hosts-bin')
  await mkdir(bin)
  await writeFile(join(bin, 'docker'), program)
  await chmod(join(bin, 'docker'), 0o755)
  // A file that is not CommonJS by its name would be a module, as in this project.
  await writeFile(join(bin, 'package.json'), '{"type":"commonjs"}')
  const fileOf = (engine: string) => join(directory, engine.replaceAll('/', '_'))
  for (const [engine, objects] of Object.entries(engines)) await writeFile(fileOf(engine), JSON.stringify(objects))
  await writeFile(join(directory, 'all'), JSON.stringify({ network: networks }))
  await writeFile(join(directory, 'calls'), '')
  const read = async (path: string) => JSON.parse(await readFile(path, 'utf8')) as FakeObjects
  return {
    bin,
    /** Returns the names of the objects that exist, by engine; those of networks under "all". */
    async names(): Promise<Record<string, string[]>> {
      const entries = [...Object.keys(engines).map((engine) => [engine, fileOf(engine)] as const)]
      const all = await Promise.all(
        [...entries, ['all', join(directory, 'all')] as const].map(async ([engine, path]) => {
          const objects = Object.values(await read(path)).flat()
          return [engine, objects.map(({ name }) => name).sort()] as const
        }),
      )
      return Object.fromEntries(all)
    },
    /** Returns the calls in their order: the engine and the arguments. */
    calls: async () => (await readFile(join(directory, 'calls'), 'utf8')).trimEnd().split('\n'),
  }
}
