// `deploy/setup --swarm` with a `docker` of the test, which runs the programs of the image from this checkout.
import { execFile } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { parse } from 'yaml'

const run = promisify(execFile)
const project = new URL('../../../', import.meta.url).pathname
const s3 = ['--s3-endpoint', 'https://s3.example.org', '--s3-bucket', 'files', '--s3-access-key-id', 'key']
/** The hosts of the tests. */
export const hosts = [
  'n1=10.99.0.1,zone=rack-1',
  'n2=10.99.0.2',
  'n3=10.99.0.3,docker-socket=/run/other.sock,docker-group=77',
  'n4=10.99.0.4',
]
/** The options of the tests, without the hosts. */
export const options = [
  '--domain',
  'apps.example.org',
  '--network-range',
  '10.210.0.0/16',
  '--docker-group',
  '998',
  ...s3,
]
/** Returns the options that name the hosts. */
export const hostOptions = (ids: readonly string[] = hosts) => ids.flatMap((host) => ['--host', host])

/** A service of a Compose file. */
export interface Definition {
  image: string
  container_name: string
  user: string
  restart: string
  read_only: boolean
  cap_drop: string[]
  security_opt: string[]
  mem_limit: string
  cpus: number
  pids_limit: number
  environment?: Record<string, string>
  networks?: Record<string, { aliases?: string[]; ipv4_address?: string }>
  network_mode?: string
  volumes?: (string | { type: string; source: string; target: string; read_only: boolean })[]
  ports?: string[]
  group_add?: string[]
  entrypoint?: string[]
  labels: Record<string, string>
}

interface ComposeFile {
  services: Record<string, Definition>
  networks: Record<string, { name?: string; external?: boolean }>
  volumes: Record<string, object>
}

/** A program that runs the image's programs from this checkout, and records all calls. */
const fakeDocker = (directory: string) => `#!/bin/sh
echo "$*" >> '${directory}/calls'
case $1 in
  info) echo "\${FAKE_MANAGER:-true}" ;;
  network)
    for name; do :; done
    if [ "$2" = create ]; then
      while [ "$1" != --subnet ]; do shift; done
      echo "$name $2" >> '${directory}/networks'
    else grep "^$name " '${directory}/networks' 2> /dev/null | cut -d ' ' -f 2 | grep .; fi ;;
  run)
    while [ "\${1#/app/}" = "$1" ]; do shift; done
    program=\${1#/app/}
    shift
    exec '${process.execPath}' '${project}'"$program" "$@" ;;
esac
`

/** Opens a directory for the files. */
export async function openSetup(t: Test) {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-setup-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const files = join(directory, 'files')
  await mkdir(join(directory, 'bin'))
  await writeFile(join(directory, 'bin/docker'), fakeDocker(directory))
  await chmod(join(directory, 'bin/docker'), 0o755)
  // The kernel of the test's machine decides nothing.
  const kernel = '#!/bin/sh\n[ -n "$FAKE_KERNEL" ] && exec "$FAKE_KERNEL"\nexit 1\n'
  await writeFile(join(directory, 'bin/unshare'), kernel, { mode: 0o755 })
  await writeFile(join(directory, 's3-key'), 'the secret key of S3\n')
  const setUp = (args: readonly string[], environment: Record<string, string> = {}) => {
    const env = {
      PATH: `${join(directory, 'bin')}:${process.env['PATH'] ?? ''}`,
      DOCKER_HOST: 'unix:///nowhere',
      ...environment,
    }
    const all = ['--swarm', '--files', files, '--s3-secret-key-file', join(directory, 's3-key'), ...args]
    return run(join(project, 'deploy/setup'), all, { env })
  }
  const read = (path: string) => readFile(join(files, path), 'utf8')
  return {
    directory,
    files,
    setUp,
    /** Returns what the program writes to its standard error; empty if it succeeds. */
    errorOf: (args: readonly string[], environment: Record<string, string> = {}): Promise<string> =>
      setUp(args, environment).then(
        () => '',
        (error: unknown) => (error instanceof Error && 'stderr' in error ? String(error.stderr) : ''),
      ),
    read,
    compose: async (host: string) => parse(await read(`hosts/${host}/docker-compose.yml`)) as ComposeFile,
    /** Returns the contents and owners of all files below a directory. */
    async all(below: string): Promise<Record<string, { text: string; mode: number; owner: number }>> {
      const found = await readdir(join(files, below), { recursive: true, withFileTypes: true })
      const entries = found
        .filter((entry) => entry.isFile())
        .map(async ({ parentPath, name }) => {
          const path = join(parentPath, name)
          const { mode, uid } = await stat(path)
          return [
            path.slice(files.length + 1),
            { text: await readFile(path, 'utf8'), mode: mode & 0o777, owner: uid },
          ] as const
        })
      return Object.fromEntries(await Promise.all(entries))
    },
  }
}
