// Makes certificates for one test with openssl: an authority, and the certificates that it signs.
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

export interface Pair {
  cert: string
  key: string
}

export interface Authority {
  certificate: string
  /** Issues a certificate. @param name its subjectAltName, e.g. `IP:127.0.0.1` */
  issue(name: string): Promise<Pair>
  /** Writes a directory in the format of Docker's clients: `ca.pem`, `cert.pem`, `key.pem`. @returns its path */
  clientDirectory(path: string): Promise<string>
}

export async function makeAuthority(directory: string): Promise<Authority> {
  await mkdir(directory, { recursive: true })
  const at = (file: string) => join(directory, file)
  const openssl = (...args: string[]) => run('openssl', args, { timeout: 30_000 })
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  await openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    at('ca.key'),
    '-out',
    at('ca.pem'),
    '-days',
    '1',
    '-subj',
    '/CN=test authority',
  )
  const certificate = await readFile(at('ca.pem'), 'utf8')
  let serial = 0
  const authority: Authority = {
    certificate,
    async issue(name) {
      const base = at(`issued-${++serial}`)
      await openssl('req', ...newKey, '-keyout', `${base}.key`, '-out', `${base}.csr`, '-subj', `/CN=test ${serial}`)
      await writeFile(`${base}.ext`, `subjectAltName=${name}\n`)
      const signing = [
        '-CA',
        at('ca.pem'),
        '-CAkey',
        at('ca.key'),
        '-set_serial',
        String(serial + 1),
        '-days',
        '1',
        '-extfile',
        `${base}.ext`,
      ]
      await openssl('x509', '-req', '-in', `${base}.csr`, '-out', `${base}.pem`, ...signing)
      return { cert: await readFile(`${base}.pem`, 'utf8'), key: await readFile(`${base}.key`, 'utf8') }
    },
    async clientDirectory(path) {
      await mkdir(path, { recursive: true })
      const { cert, key } = await authority.issue('DNS:client')
      await Promise.all([
        writeFile(join(path, 'ca.pem'), certificate),
        writeFile(join(path, 'cert.pem'), cert),
        writeFile(join(path, 'key.pem'), key),
      ])
      return path
    },
  }
  return authority
}
