// Runs the shell blocks of a runbook in docs/operate/ one after the other in one environment, as an operator does. Only
// addresses and paths are replaced.
import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const blockMilliseconds = 30 * 60_000
/** The time in seconds that Compose 1 waits for a response of the engine. Its default of 60 is too short for a busy machine. */
const composeSeconds = '300'

/**
 * Returns the shell blocks below a heading of the second level, in order.
 * @param page path below docs/
 * @throws Error when the section has no shell block
 */
export async function shellBlocks(page: string, heading: string): Promise<string[]> {
  const text = await readFile(new URL(`../../docs/${page}`, import.meta.url), 'utf8')
  const [, section] = text.split(`\n## ${heading}\n`)
  const blocks = [...(section?.split(/\n##+ /)[0] ?? '').matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block)
  if (blocks.length === 0) throw new Error(`docs/${page} has no shell block below "${heading}"`)
  return blocks
}

export interface Shell {
  /** Runs a block; the next block sees its exports. @returns the block's output. @throws Error with the output when a command fails */
  run(block: string): Promise<string>
}

/**
 * Opens a shell for the blocks of a runbook.
 * @param directory working directory of the blocks; the first block may create it
 * @param tools directory for substitutes of programs that this machine lacks: the plugin `docker compose`, and `sudo`
 * @param replaced maps texts of the documentation to those of this machine
 */
export async function openShell(options: {
  directory: string
  tools: string
  environment: Record<string, string>
  replaced: ReadonlyMap<string, string>
}): Promise<Shell> {
  const { directory, tools, environment, replaced } = options
  const exported = join(tools, 'exported')
  await mkdir(tools, { recursive: true })
  await writeFile(exported, '')
  const tool = async (name: string, script: string) => {
    await writeFile(join(tools, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(tools, name), 0o755)
  }
  const path = process.env['PATH'] ?? ''
  if (!(await works('docker', ['compose', 'version']))) {
    await tool(
      'docker',
      `PATH='${path}'\nif [ "$1" = compose ]; then shift; exec docker-compose "$@"; fi\nexec docker "$@"`,
    )
  }
  if (process.getuid?.() === 0 && !(await works('sudo', ['--version']))) await tool('sudo', 'exec "$@"')
  return {
    async run(block) {
      const text = [...replaced].reduce((before, [documented, here]) => before.replaceAll(documented, here), block)
      const script = `set -euo pipefail\n. ${exported}\n${text}\nexport -p > ${exported}\n`
      const env = { ...process.env, COMPOSE_HTTP_TIMEOUT: composeSeconds, ...environment, PATH: `${tools}:${path}` }
      const { stdout, stderr } = await run('bash', ['-c', script], {
        cwd: directory,
        env,
        timeout: blockMilliseconds,
        maxBuffer: 64 * 2 ** 20,
      }).catch((cause: unknown) => {
        const { stdout = '', stderr = '' } = cause as { stdout?: string; stderr?: string }
        throw new Error(`a block of the runbook failed:\n${text}\n${stdout.slice(-2000)}\n${stderr.slice(-4000)}`, {
          cause,
        })
      })
      return stdout + stderr
    },
  }
}

async function works(program: string, args: readonly string[]): Promise<boolean> {
  return run(program, args).then(
    () => true,
    () => false,
  )
}
