// Which of a region's shared runtimes serve a tenant.
import { runtimeOf } from '@tenantry/contract'
import t from 'tap'
import { sharedRuntimeUrls } from '#control-plane/regions/index.ts'

const urls = ['http://127.0.0.1:1', 'http://127.0.0.1:2', 'http://127.0.0.1:3']
const ids = Array.from({ length: 30 }, (_, n) => `t_${String(n).padStart(20, '0')}`)

t.test('A tenant has one of the listed runtimes, by its number', async (t) => {
  for (const id of ids)
    t.same(sharedRuntimeUrls({ engine: 'process', runtime_urls: urls }, id), [urls[runtimeOf(id, 3)]])
  t.equal(new Set(ids.flatMap((id) => sharedRuntimeUrls({ engine: 'process', runtime_urls: urls }, id))).size, 3)
  t.same(sharedRuntimeUrls({ engine: 'process', runtime_urls: urls.slice(0, 1) }, ids[0] ?? ''), urls.slice(0, 1))
})

t.test('On a Docker Engine, all shared runtimes serve each tenant', async (t) => {
  for (const id of ids) t.same(sharedRuntimeUrls({ engine: 'docker', runtime_urls: urls }, id), urls)
})
