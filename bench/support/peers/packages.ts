// Installs the peers from npm when they are first needed, into a directory that later runs use again. They are not
// dependencies of the project.
import { execFile } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Report } from '#bench/figures.ts'

const run = promisify(execFile)

/** The exact versions, so that all runs compare with the same programs. */
const versions = { '@platformatic/db': '3.67.0', workerd: '1.20261117.1', deno: '2.9.6' }
const installMilliseconds = 600_000

/** Names and versions of the peers, for the table. */
export const peerNames = {
  platformaticDb: `Platformatic DB ${versions['@platformatic/db']}`,
  workerd: `workerd ${versions.workerd}`,
  deno: `Deno ${versions.deno}`,
}

/** Paths of the peers' programs. */
export interface PeerPrograms {
  /** The main file of the package, which Node imports. */
  platformaticDb: string
  workerd: string
  deno: string
}

/**
 * Installs the peers, unless the directory has these versions of them.
 * @param directory it contains only the peers
 */
export async function installPeers(directory: string, report: Report): Promise<PeerPrograms> {
  // It is written last: without it, an installation was interrupted.
  const record = join(directory, 'installed.json')
  const wanted = JSON.stringify(versions)
  if ((await readFile(record, 'utf8').catch(() => '')) !== wanted) {
    report(`npm installs ${Object.values(peerNames).join(', ')}`)
    await rm(directory, { recursive: true, force: true })
    await mkdir(directory, { recursive: true })
    await writeFile(join(directory, 'package.json'), '{"private":true}')
    const packages = Object.entries(versions).map(([name, version]) => `${name}@${version}`)
    // The scripts of these packages would download or compile what is not used here.
    const options = ['--prefix', directory, '--save-exact', '--ignore-scripts', '--no-audit', '--no-fund']
    await run('npm', ['install', ...options, ...packages], { cwd: directory, timeout: installMilliseconds })
    await writeFile(record, wanted)
  }
  const modules = join(directory, 'node_modules')
  const isArm = process.arch === 'arm64'
  return {
    platformaticDb: join(modules, '@platformatic', 'db', 'index.js'),
    workerd: join(modules, '@cloudflare', `workerd-linux-${isArm ? 'arm64' : '64'}`, 'bin', 'workerd'),
    deno: join(modules, '@deno', `linux-${isArm ? 'arm64' : 'x64'}-glibc`, 'deno'),
  }
}
