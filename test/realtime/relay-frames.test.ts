// The frames between runtimes, and the entries of presence that one runtime has received from another one.
import fc from 'fast-check'
import t from 'tap'
import { readConfig } from '#tenant-runtime/config.ts'
import { encodeRelayed, encodeText, readRelayFrame } from '#tenant-runtime/realtime/relay/relay-frame.ts'
import { RemoteEntries } from '#tenant-runtime/realtime/relay/remote-entries.ts'
import { seed } from '#test/support/effort.ts'
import { startRuntime } from '#test/support/runtime.ts'

const name = fc.record({ topic: fc.string({ unit: 'grapheme' }), isPrivate: fc.boolean() })

t.test('A broadcast is read as it was sent', async () => {
  fc.assert(
    fc.property(fc.string(), name, fc.string({ unit: 'grapheme' }), fc.uint8Array(), (tenantId, of, event, array) => {
      const bytes = Buffer.from(array)
      const text = JSON.stringify(bytes.toString())
      for (const content of [
        { kind: 'bytes' as const, bytes },
        { kind: 'json' as const, text },
      ]) {
        const length = content.kind === 'json' ? Buffer.byteLength(text) : bytes.length
        const read = readRelayFrame(encodeRelayed(tenantId, of, { event, content, length }), true)
        const expected = { kind: 'broadcast', tenantId, ...of, broadcast: { event, content, length } }
        if (!equal(read, expected)) throw new Error(JSON.stringify([read, expected]))
      }
    }),
    { seed },
  )
})

t.test('A change of presence is read as it was sent', async () => {
  const meta = fc.dictionary(fc.string(), fc.jsonValue()).map((values) => ({ ...values, phx_ref: 'r' }))
  fc.assert(
    fc.property(name, fc.string(), meta, (of, key, values) => {
      const joined = { key, meta: values }
      const text = encodeText({ kind: 'presence', tenantId: 't', ...of, left: 'l', joined })
      const read = readRelayFrame(Buffer.from(text), false)
      if (encodeText(read as Parameters<typeof encodeText>[0]) !== text) throw new Error(text)
    }),
    { seed },
  )
})

t.test('Whatever else arrives is an error of the frame', async (t) => {
  const texts = ['', '{', 'null', '{"kind":"x"}', '{"kind":"presence","tenantId":"t","topic":"a","isPrivate":1}']
  for (const text of texts)
    t.throws(
      () => readRelayFrame(Buffer.from(text), false),
      { message: /^The frame is (not JSON|none of those)/ },
      text,
    )
  const head = (text: string) => Buffer.concat([Buffer.from([0, 0, 0, text.length]), Buffer.from(text)])
  for (const bytes of [Buffer.alloc(0), Buffer.from([255, 255, 255, 255]), head('{}'), head('["t","a",true,"e","x"]')])
    t.throws(
      () => readRelayFrame(bytes, true),
      { message: /^The (head of the )?broadcast (ends in its head|is not valid)/ },
      bytes.toString('hex'),
    )
})

t.test('After each transfer, the entries are those of the other runtime', async () => {
  const refs = fc.array(fc.constantFrom('a', 'b', 'c', 'd', 'e'))
  const changes = fc.array(fc.record({ ref: fc.constantFrom('a', 'b', 'c', 'd', 'e'), isJoin: fc.boolean() }))
  fc.assert(
    fc.property(fc.array(fc.record({ sent: refs, changes })), (transfers) => {
      const entries = new RemoteEntries()
      const shown = new Set<string>()
      for (const { sent, changes } of transfers) {
        const there = new Set(sent)
        entries.begin()
        for (const ref of sent) if (entries.add({ ref, topic: 't', isPrivate: false })) shown.add(ref)
        for (const { ref, isJoin } of changes) {
          if (isJoin) there.add(ref)
          else there.delete(ref)
          if (isJoin && entries.add({ ref, topic: 't', isPrivate: false })) shown.add(ref)
          else if (!isJoin && entries.remove(ref) !== undefined) shown.delete(ref)
        }
        for (const { ref } of entries.end()) shown.delete(ref)
        if (!equal([...shown].sort(), [...there].sort()))
          throw new Error(`${[...shown].join()} instead of ${[...there].join()}`)
      }
      for (const { ref } of entries.clear()) shown.delete(ref)
      if (shown.size > 0) throw new Error(`${[...shown].join()} remain`)
    }),
    { seed },
  )
})

t.test('A runtime without others has no relay', async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const { status } = await tenant.request('GET', '/internal/v1/realtime-relay')
  t.equal(status, 404)
})

t.test('The setting of the other runtimes needs names with ports', async (t) => {
  for (const hosts of ['runtime-1', 'runtime-1:99999', 'http://runtime-1:80', 'a:1,,b:2', ':80'])
    t.throws(
      () =>
        readConfig({
          TENANTRY_INTERNAL_TOKEN_FILE: tokenFile(t),
          TENANTRY_CONTROL_URL: 'http://c',
          TENANTRY_DATA: '/d',
          TENANTRY_SIBLING_HOSTS: hosts,
        }),
      { message: /^Invalid host ".*" in TENANTRY_SIBLING_HOSTS\. It must be a name and a port/ },
      hosts,
    )
})

const tokenFile = (t: { testdir(files: Record<string, string>): string }) =>
  `${t.testdir({ token: 'x'.repeat(48) })}/token`

function equal(one: unknown, other: unknown): boolean {
  const plain = (value: unknown) =>
    JSON.stringify(value, (_key, part: unknown) => (Buffer.isBuffer(part) ? part.toString('hex') : part))
  return plain(one) === plain(other)
}
