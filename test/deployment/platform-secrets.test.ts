// The certificates and secrets of a platform on several hosts after a run that was interrupted, and with files that were lost.
import { X509Certificate, createPrivateKey } from 'node:crypto'
import t from 'tap'
import { readPlatformOptions } from '#control-plane/deployment/platform-options.ts'
import { platformSecrets, type StoredFiles } from '#control-plane/deployment/platform-secrets.ts'

const hosts = ['n1', 'n2', 'n3'].flatMap((id, at) => ['--host', `${id}=10.99.0.${at + 1}`])
const options = readPlatformOptions(['--domain', 'apps.example.org', '--docker-group', '998', ...hosts])
const now = new Date('2026-01-01T00:00:00Z')

/** Files in memory. The run ends before it writes the file with a number. */
function filesThatEnd(contents: Map<string, string>, after = Infinity): StoredFiles {
  let written = 0
  const files: StoredFiles = {
    read: (path) => contents.get(path),
    write(path, text) {
      if (written === after) throw new Error('no space is left on the device')
      written += 1
      contents.set(path, text)
    },
    keep(path, create) {
      const found = files.read(path)
      if (found !== undefined) return found
      const text = create()
      files.write(path, text)
      return text
    },
    names: () => [],
  }
  return files
}

t.test('After an interruption at any file, the next run completes the pairs of certificates and keys', async (t) => {
  const all = new Map<string, string>()
  platformSecrets(options, filesThatEnd(all), now)
  t.equal(all.size, 23)
  for (let after = 0; after < all.size; after += 1) {
    const contents = new Map<string, string>()
    t.throws(() => platformSecrets(options, filesThatEnd(contents, after), now), /no space is left/)
    const before = new Map(contents)
    platformSecrets(options, filesThatEnd(contents), now)
    t.same([...contents.keys()].sort(), [...all.keys()].sort())
    for (const [path, text] of contents) {
      const isHalf = path.endsWith('-key.pem') && !before.has(path.replace('-key.pem', '.pem'))
      if (before.has(path) && !isHalf) t.equal(text, before.get(path), path)
      if (!path.endsWith('-key.pem')) continue
      const certificate = new X509Certificate(contents.get(path.replace('-key.pem', '.pem')) ?? '')
      t.ok(certificate.checkPrivateKey(createPrivateKey(text)), path)
      const authority = path.startsWith('issued/etcd')
        ? 'etcd'
        : path.startsWith('issued/server')
          ? 'clients'
          : 'docker-proxies'
      if (path.startsWith('issued/'))
        t.ok(
          certificate.verify(new X509Certificate(contents.get(`authorities/${authority}.pem`) ?? '').publicKey),
          path,
        )
    }
  }
})

t.test('A certificate without its key, or with another one, is rejected, and stays', async (t) => {
  const all = new Map<string, string>()
  platformSecrets(options, filesThatEnd(all), now)
  const run = (changed: Iterable<[string, string]>) => () =>
    platformSecrets(options, filesThatEnd(new Map(changed)), now)
  t.throws(run([...all].filter(([path]) => path !== 'authorities/etcd-key.pem')), {
    name: 'ConfigurationError',
    message: /^The file authorities\/etcd-key\.pem does not exist, but authorities\/etcd\.pem does\./,
  })
  t.throws(run([...all, ['authorities/etcd-key.pem', all.get('issued/etcd-key.pem') ?? '']]), {
    name: 'ConfigurationError',
    message: 'The key in authorities/etcd-key.pem is not that of the certificate in authorities/etcd.pem.',
  })
  t.throws(run([...all, ['issued/etcd-key.pem', 'text']]), {
    name: 'ConfigurationError',
    message: 'The files issued/etcd.pem and issued/etcd-key.pem are not in PEM.',
  })
})
