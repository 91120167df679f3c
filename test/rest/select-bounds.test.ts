// The bounds of a request, so that the response to a short URL is at most a small multiple of the stored rows.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'

const runtime = await startRuntime(t)
const tenant = await runtime.addTenant()
await query(
  tenant.home.adminUrl,
  `create table books (id integer primary key, big text, data jsonb, parent integer references books (id));
   alter table books enable row level security;
   create policy everyone on books using (true);
   insert into books values (1, repeat('x', 600000), '{"a":{"b":1},"c":[1,2]}', null);
   insert into books select n, 'small', '{}', 1 from generate_series(2, 1101) n`,
)
const { status, text } = await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
if (status !== 200) throw new Error(text)

const get = (search: string) => tenant.request('GET', `/rest/v1/books?${search}`)
const times = (count: number, item: (n: number) => string) => Array.from({ length: count }, (_, n) => item(n)).join(',')

t.test('A field is in a list of items at most 4 times', async (t) => {
  const attack = await get(`id=eq.1&select=${times(1_599, () => 'big')}`)
  t.equal(attack.status, 400)
  t.match(attack.json(), { code: 'PGRST100', message: /^Invalid query parameter "select": / })
  for (const [select, message] of [
    [times(5, () => 'big'), /the field "big" is requested more than 4 times in a list/],
    [`*,${times(4, () => 'big')}`, /the field "big" is requested more than 4 times in a list/],
    [times(5, (n) => `a${n}:big::text`), /the field "big" is requested more than 4 times in a list/],
    [times(5, () => 'data->a->b'), /the field "data" is requested more than 4 times in a list/],
    [times(17, (n) => `r${n}:parent(big)`), /the field "big" is requested more than 16 times/],
    [times(201, (n) => `c${n}:id`), /at most 200 items can be selected/],
    [`id,r:parent(${times(200, (n) => `c${n}:id`)})`, /at most 200 items can be selected/],
  ] as const) {
    const response = await get(`id=eq.1&select=${select}`)
    t.equal(response.status, 400, select.slice(0, 60))
    t.match(response.json(), { statusCode: '400', code: 'PGRST100', message })
  }
  const allowed = await get(`id=eq.1&select=${times(4, () => 'big')}`)
  t.equal(allowed.status, 200)
  t.equal(allowed.bytes.length > 2_400_000, true)
})

t.test('Small fields, different parts of a value, and aggregates may be selected more often', async (t) => {
  for (const select of [
    times(150, (n) => `c${n}:id`),
    times(20, (n) => `p${n}:data->k${n}`),
    'big,min:big.min(),max:big.max(),n:big.count()',
    '*,big',
    times(5, (n) => `r${n}:parent(*)`),
  ])
    t.equal((await get(`id=eq.1&select=${select}`)).status, 200, select.slice(0, 60))
})

t.test('Filters and orders of a field are bounded', async (t) => {
  const filters = await get(`select=id&or=(${times(101, () => 'big.like.x')})`)
  t.equal(filters.status, 400)
  t.match(filters.json(), { code: 'PGRST100', message: /"big": a field can have at most 100 filters/ })
  t.equal((await get(`select=id&or=(${times(100, () => 'big.eq.x')})`)).status, 200)
  t.equal((await get(`select=id&limit=1&or=(${times(300, (n) => `id.eq.${n}`)})`)).status, 200)
  const order = await get(`select=id&order=${times(5, () => 'big')}`)
  t.equal(order.status, 400)
  t.match(order.json(), { message: /"order": the field "big" is named more than 4 times/ })
})

t.test('An embedded list without a limit has the default limit', async (t) => {
  const count = async (search: string) => {
    const [book] = (await get(`id=eq.1&select=id,books(id)${search}`)).list()
    return Array.isArray(book?.['books']) ? book['books'].length : -1
  }
  t.equal(await count(''), 1_000)
  t.equal(await count('&books.limit=1050'), 1_050)
  t.equal(await count('&books.limit=2'), 2)
})
