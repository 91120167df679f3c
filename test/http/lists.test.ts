// Lists are read completely by cursor: no item is missing or repeated, whatever the filter and whatever is created
// meanwhile.
import t from 'tap'
import type { OperationBody, TenantBody } from '#control-plane/tenants/tenant-body.ts'
import { newName, startApi } from '#test/support/control-plane/api.ts'

// Nothing is reconciled, so that the test sets the states of the tenants.
const api = await startApi(t, { control: false })

const plans = ['Free', 'Pro', 'Enterprise']
const statuses = ['pending', 'ready', 'suspended', 'failed', 'deleting']
const ids: string[] = []

async function make(name: string, plan: string): Promise<string> {
  const response = await api.call('POST', '/v1/tenants', { body: { name, plan, region: 'local' } })
  if (response.status !== 201) throw new Error(response.text)
  return (response.body as TenantBody).tenant_id
}

for (let nth = 0; nth < 25; nth++) {
  const id = await make(newName(nth % 2 === 0 ? 'even' : 'odd'), plans[nth % 3] ?? '')
  await api.sql('update tenants set status = $2 where id = $1', [id, statuses[nth % 5]])
  ids.push(id)
}

interface Page {
  tenants: TenantBody[]
  operations: OperationBody[]
  next_cursor: string | null
}

/** Returns every page of a list, and calls `between` before it reads the next one. */
async function pages(path: string, between: () => Promise<unknown> = () => Promise.resolve()): Promise<Page[]> {
  const found: Page[] = []
  for (let cursor: string | null = ''; cursor !== null;) {
    const response = await api.call('GET', cursor === '' ? path : `${path}&cursor=${cursor}`)
    if (response.status !== 200) throw new Error(response.text)
    const page = response.body as Page
    found.push(page)
    cursor = page.next_cursor
    if (cursor !== null) await between()
  }
  return found
}

const idsOf = (found: Page[]) => found.flatMap(({ tenants }) => tenants.map(({ tenant_id }) => tenant_id))

t.test('Pages of every size contain every tenant once, oldest first', async (t) => {
  for (const limit of [1, 4, 5, 24, 25, 26, 1000]) {
    const found = await pages(`/v1/tenants?limit=${limit}`)
    t.same(idsOf(found), ids, `limit ${limit}`)
    t.same(found.length, Math.ceil(25 / limit), 'no page is empty')
    t.ok(found.every(({ tenants }) => tenants.length <= limit))
  }
  t.same(idsOf(await pages('/v1/tenants?')), ids, 'without a limit')
})

t.test('Each filter, alone and with others, selects what it names', async (t) => {
  const where = (holds: (nth: number) => boolean) => ids.filter((_, nth) => holds(nth))
  const cases: [filter: string, wanted: string[]][] = [
    ...plans.map((plan, index): [string, string[]] => [`plan=${plan}`, where((nth) => nth % 3 === index)]),
    ...statuses.map((status, index): [string, string[]] => [`status=${status}`, where((nth) => nth % 5 === index)]),
    ['region=local', ids],
    ['region=mars', []],
    ['plan=Gold', []],
    ['name_prefix=even-', where((nth) => nth % 2 === 0)],
    ['name_prefix=odd', where((nth) => nth % 2 === 1)],
    ['name_prefix=Odd', []],
    // A pattern of LIKE is plain text here.
    ['name_prefix=%25', []],
    ['name_prefix=_dd', []],
    ['name_prefix=%5C', []],
    ['name_prefix=odd&plan=Pro', where((nth) => nth % 2 === 1 && nth % 3 === 1)],
    ['plan=Free&status=ready&region=local', where((nth) => nth % 3 === 0 && nth % 5 === 1)],
  ]
  for (const [filter, wanted] of cases) t.same(idsOf(await pages(`/v1/tenants?limit=3&${filter}`)), wanted, filter)
})

t.test('No tenant is missing or repeated while others are created', async (t) => {
  const made: Promise<string>[] = []
  const certain = ids.filter((_, nth) => nth % 3 === 0)
  const found = await pages('/v1/tenants?limit=3&plan=Free', async () => {
    if (made.length === 12) return
    // The first tenant is created before the next page is read; the second may still be in progress.
    const first = make(newName('even'), 'Free')
    made.push(first, make(newName('odd'), 'Free'))
    certain.push(await first)
  })
  const seen = idsOf(found)
  t.same(new Set(seen).size, seen.length, 'no tenant is repeated')
  t.same(
    certain.filter((id) => !seen.includes(id)),
    [],
    'no tenant that existed when its page was read is missing',
  )
  t.ok(certain.length > 11, 'several were created meanwhile')
  const all = [...ids.filter((_, nth) => nth % 3 === 0), ...(await Promise.all(made))]
  t.same(idsOf(await pages('/v1/tenants?limit=4&plan=Free')).sort(), all.sort(), 'afterwards all are listed')
})

t.test('A cursor continues after its tenant is deleted', async (t) => {
  const [first] = await pages('/v1/tenants?limit=3&status=ready')
  const last = first?.tenants.at(-1)?.tenant_id ?? ''
  await api.sql('delete from tenants where id = $1', [last])
  const rest = (await api.call('GET', `/v1/tenants?limit=3&status=ready&cursor=${first?.next_cursor ?? ''}`))
    .body as Page
  t.same(
    rest.tenants.map(({ tenant_id }) => tenant_id),
    ids.filter((_, nth) => nth % 5 === 1).slice(3),
  )
})

t.test('Operations are listed the same way, also those of a deleted tenant', async (t) => {
  const all = (await pages('/v1/operations?limit=7')).flatMap(({ operations }) => operations)
  const stored = await api.sql('select id from operations')
  t.same(all.map(({ id }) => id).sort(), stored.map(({ id }) => id).sort())
  t.same(
    all.map(({ created }) => created),
    all.map(({ created }) => created).sort(),
    'oldest first',
  )
  const [gone] = all.filter(({ tenant_id }) => tenant_id === ids[11])
  t.same(
    (await pages(`/v1/operations?tenant_id=${ids[11] ?? ''}&`)).flatMap(({ operations }) => operations),
    [gone],
  )
  const count = async (filter: string) =>
    (await pages(`/v1/operations?limit=50&${filter}`)).flatMap(({ operations }) => operations).length
  t.same([await count('kind=create'), await count('kind=delete')], [all.length, 0])
  t.same([await count('state=pending'), await count('state=failed')], [all.length, 0])
})
