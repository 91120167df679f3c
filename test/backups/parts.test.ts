// Tests of the parts of a backup in a directory, and of the lists by which a copy is compared with its backup.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pack } from 'tar-stream'
import t, { type Test } from 'tap'
import {
  compareBlobs,
  indexLine,
  readIndexLine,
  watchedArchive,
  type BlobEntry,
} from '#control-plane/backups/blob-index.ts'
import { createDirectoryTarget } from '#control-plane/backups/directory-target.ts'
import { compareContent, compareObjects, settledSequences } from '#control-plane/backups/home-facts.ts'
import { linesOf } from '#control-plane/backups/lines.ts'
import { manifestHash } from '#control-plane/backups/manifest.ts'
import { openFiles } from '#control-plane/backups/parts.ts'
import { releaseMemory } from '#control-plane/backups/release-memory.ts'
import { createTextPipe } from '#control-plane/backups/text-pipe.ts'
import { manifestOf } from './support/targets.ts'

const signal = new AbortController().signal
const id = '11111111-2222-4333-8444-555555555555'

async function* once(...chunks: (string | Uint8Array)[]) {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

async function directory(t: Test): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'tenantry-target-'))
  t.teardown(() => rm(path, { recursive: true, force: true }))
  return path
}

t.test('a backup appears only when it is committed', async (t) => {
  const root = await directory(t)
  const target = createDirectoryTarget(root, 'here')
  await target.write(id, 'database', once('ab', 'c'), signal)
  t.same(await readdir(join(root, 'here')), [`${id}.making`])
  await t.rejects(
    async () => {
      for await (const chunk of target.read(id, 'database', signal))
        t.fail(`${chunk.length} bytes of an incomplete backup`)
    },
    { code: 'INCOMPLETE' },
  )
  t.same(await target.list(), [{ id, content: 'making', isQuarantined: false }])
  t.equal(await target.size(id, ['database']), undefined)
  await target.commit(id)
  t.same(await readdir(join(root, 'here')), [id])
  t.equal(await readFile(join(root, 'here', id, 'database'), 'utf8'), 'abc')
  t.equal(await target.size(id, ['database']), 3)
  t.equal(await target.size(id, ['database', 'files']), undefined, 'a part is missing')
  await target.discard(id)
  t.same(await target.list(), [{ id, content: 'whole', isQuarantined: false }], 'a committed backup is not discarded')
  await t.rejects(target.write(id, 'database', failing(), signal), /source broke/)
  await target.remove(id)
  await target.remove(id)
  t.same(await target.list(), [])
  t.same(await createDirectoryTarget(root, 'elsewhere').list(), [], 'another installation does not list it')
})

async function* failing() {
  yield Buffer.from('x')
  throw new Error('the source broke')
}

t.test('a check detects any damage to a part', async (t) => {
  const root = await directory(t)
  const key = randomBytes(32)
  const files = openFiles(createDirectoryTarget(root, 'here'), id, key, signal)
  const parts = [
    await files.write('database', once(randomBytes(200_000))),
    await files.write('files', once('files')),
    await files.write('index', once('')),
  ]
  const manifest = manifestOf(id, parts)
  const text = JSON.stringify(manifest)
  await files.writeManifest(text)
  await files.commit()
  t.same(await files.readManifest(manifestHash(text)), manifest)
  await t.rejects(files.readManifest(manifestHash('another')), { code: 'DAMAGED' })
  await t.resolves(files.check(manifest))
  await t.rejects(
    files.check({ ...manifest, parts: parts.map((part) => (part.name === 'files' ? { ...part, size: 4 } : part)) }),
    { code: 'DAMAGED', message: /"files"/ },
  )
  await t.rejects(openFiles(createDirectoryTarget(root, 'here'), id, randomBytes(32), signal).check(manifest), {
    code: 'DAMAGED',
  })

  const path = join(root, 'here', id, 'database')
  const sealed = await readFile(path)
  const flipped = Buffer.from(sealed)
  flipped[150_000] = (flipped[150_000] ?? 0) ^ 4
  await writeFile(path, flipped)
  await t.rejects(files.check(manifest), { code: 'DAMAGED', message: /"database"/ })
  await writeFile(path, sealed)
  await truncate(path, sealed.length - 1)
  await t.rejects(files.check(manifest), { code: 'DAMAGED' })
  await rm(path)
  await t.rejects(files.check(manifest), { code: 'INCOMPLETE' })
})

const blob = (letter: string, sha = letter): BlobEntry => ({
  id: `${letter.repeat(8)}-1111-4111-8111-111111111111`,
  size: 3,
  sha256: sha.repeat(64),
})
async function* blobs(...entries: BlobEntry[]) {
  yield* entries
}

t.test('a comparison names the first missing, different or additional file', async (t) => {
  const [a, b, c] = [blob('a'), blob('b'), blob('c')]
  await t.resolves(compareBlobs(blobs(a, b, c), blobs(a, b, c)))
  await t.resolves(compareBlobs(blobs(), blobs()))
  for (const found of [[a, b], [a, c], [b, c], []])
    await t.rejects(compareBlobs(blobs(a, b, c), blobs(...found)), { code: 'MISMATCH', message: /missing/ })
  await t.rejects(compareBlobs(blobs(a, b), blobs(a, b, c)), { code: 'MISMATCH', message: /not in the backup/ })
  await t.rejects(compareBlobs(blobs(a, c), blobs(a, b, c)), { code: 'MISMATCH', message: /not in the backup/ })
  await t.rejects(compareBlobs(blobs(a, b), blobs(a, blob('b', 'd'))), {
    code: 'MISMATCH',
    message: /content of the file .* differs/,
  })
  t.same(readIndexLine(indexLine(a).trim()), a)
  t.throws(() => readIndexLine('nothing'), { code: 'DAMAGED' })
})

t.test('a watched archive passes unchanged, and each of its files is reported', async (t) => {
  const tar = pack()
  tar.entry({ name: 'store' }, 'mark')
  tar.entry({ name: 'aa/aaaa' }, randomBytes(300_000))
  tar.finalize()
  const bytes: Buffer[] = []
  for await (const chunk of tar) bytes.push(chunk as Buffer)
  const archive = Buffer.concat(bytes)
  const seen: string[] = []
  const passed: Uint8Array[] = []
  for await (const chunk of watchedArchive(
    once(archive.subarray(0, 1000), archive.subarray(1000)),
    async ({ id, size }) => void seen.push(`${id} ${size}`),
  ))
    passed.push(chunk)
  t.ok(Buffer.concat(passed).equals(archive))
  t.same(seen, ['store 4', 'aaaa 300000'])
  await t.rejects(async () => {
    for await (const chunk of watchedArchive(once(archive, archive), async () =>
      Promise.reject(new Error('not this one')),
    ))
      t.ok(chunk)
  }, /not this one/)
})

t.test('the files of a watched archive are hashed even if its chunks are freed at once', async (t) => {
  const tar = pack()
  const content = randomBytes(3_000_000)
  tar.entry({ name: 'aa/aaaa' }, content)
  tar.finalize()
  const seen: string[] = []
  async function* chunks() {
    for await (const chunk of tar) yield new Uint8Array(chunk as Buffer)
  }
  let bytes = 0
  for await (const chunk of watchedArchive(chunks(), async ({ sha256 }) => void seen.push(sha256))) {
    bytes += chunk.length
    releaseMemory(chunk)
  }
  t.ok(bytes > content.length)
  t.same(seen, [createHash('sha256').update(content).digest('hex')])
})

t.test('a full text pipe keeps the order of lines, and passes its error on', async (t) => {
  const pipe = createTextPipe()
  const writing = (async () => {
    for (let n = 0; n < 50_000; n++) await pipe.write(`line ${n} of many\n`)
    pipe.end()
  })()
  let count = 0
  for await (const line of linesOf(pipe.content)) if (line === `line ${count} of many`) count++
  await writing
  t.equal(count, 50_000)
  const broken = createTextPipe()
  broken.fail(new Error('it broke'))
  await t.rejects(async () => {
    for await (const chunk of broken.content) t.fail(String(chunk.length))
  }, /it broke/)
})

t.test('a comparison names the differences of two homes', async (t) => {
  const home = {
    tables: [{ name: 'notes', rows: '3', hash: 'x' }],
    sequences: [{ name: 's', last_value: '7', is_called: true }],
  }
  t.doesNotThrow(() => compareContent(home, structuredClone(home)))
  t.throws(() => compareContent(home, { ...home, tables: [] }), { code: 'MISMATCH', message: /"notes" is missing/ })
  t.throws(() => compareContent(home, { ...home, tables: [{ name: 'notes', rows: '2', hash: 'x' }] }), {
    message: /2 rows instead of 3/,
  })
  t.throws(() => compareContent(home, { ...home, tables: [{ name: 'notes', rows: '3', hash: 'y' }] }), {
    message: /the content of the table "notes" differs/,
  })
  t.throws(() => compareContent(home, { ...home, sequences: [{ name: 's', last_value: '8', is_called: true }] }), {
    message: /the value of the sequence "s" differs/,
  })
  t.doesNotThrow(
    () =>
      compareContent(
        { ...home, sequences: settledSequences(home.sequences, [{ name: 's', last_value: '9', is_called: true }]) },
        home,
      ),
    'a sequence that moved during the backup is not compared',
  )
  t.same(settledSequences(home.sequences, structuredClone(home.sequences)), home.sequences)
  t.throws(() => compareContent({ ...home, tables: [] }, home), { message: /not in the backup/ })
  const objects = [{ kind: 'policy', count: 2, sha256: 'a' }]
  t.doesNotThrow(() => compareObjects(objects, structuredClone(objects)))
  t.throws(() => compareObjects(objects, []), { message: /0 objects of the kind "policy" instead of 2/ })
  t.throws(() => compareObjects(objects, [{ kind: 'policy', count: 2, sha256: 'b' }]), {
    message: /the objects of the kind "policy" differ/,
  })
})
