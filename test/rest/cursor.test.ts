// Paging by keys: all pages together contain every record once and in order, for any order and during inserts and
// deletes.
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { query } from '#test/support/postgres.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'

const list = '/rest/v1/items'

async function openScene(t: Test): Promise<TestTenant> {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await query(
    tenant.home.adminUrl,
    `
    create table items (a int, b int, label text, score double precision, at timestamptz, data jsonb, k0 int default 7, primary key (a, b));
    create table marks (item int);
    alter table items enable row level security; create policy allow_all on items using (true) with check (true);
    alter table marks enable row level security; create policy allow_all on marks using (true) with check (true);
    insert into items (a, b, label, score, at, data)
      select n / 7, n, case when n % 5 > 0 then 'l' || n % 4 end, case when n % 3 > 0 then n % 6 * 0.1 end,
        '2026-01-01'::timestamptz + n % 9 * interval '1.000001 s', jsonb_build_object('x', n % 3)
      from generate_series(1, 60) n`,
  )
  await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
  return tenant
}

async function pages(
  tenant: TestTenant,
  parameters: string,
  limit: number,
): Promise<{ rows: Record<string, unknown>[]; counts: number[] }> {
  const rows: Record<string, unknown>[] = []
  const counts: number[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const response = await tenant.request('GET', `${list}?${parameters}&limit=${limit}&cursor=${cursor}`)
    if (response.status !== 200) throw new Error(response.text)
    rows.push(...response.list())
    counts.push(response.list().length)
    const next = response.headers['next-cursor']
    cursor = next === undefined ? undefined : String(next)
  }
  return { rows, counts }
}

t.test('Paging by keys', async (t) => {
  const tenant = await openScene(t)

  t.test('The pages contain every record once, in the order of the whole list', async (t) => {
    const column = fc.constantFrom('a', 'b', 'label', 'score', 'at', 'data->x', 'data->>x')
    const term = fc
      .tuple(column, fc.constantFrom('', '.asc', '.desc'), fc.constantFrom('', '.nullsfirst', '.nullslast'))
      .map((parts) => parts.join(''))
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(term, { maxLength: 3, selector: (text) => text.split('.')[0] }),
        fc.integer({ min: 1, max: 25 }),
        async (order, limit) => {
          const direction = order.at(-1)?.includes('.desc') === true ? 'desc' : 'asc'
          const whole = [
            ...order,
            ...['a', 'b']
              .filter((key) => !order.some((term) => term.split('.')[0] === key))
              .map((key) => `${key}.${direction}`),
          ]
          const wanted = (await tenant.request('GET', `${list}?select=a,b,k0&order=${whole.join(',')}`)).list()
          const { rows } = await pages(
            tenant,
            `select=a,b,k0${order.length === 0 ? '' : `&order=${order.join(',')}`}`,
            limit,
          )
          t.same(rows, wanted, `${order.join(',')} by ${limit}`)
        },
      ),
      { numRuns: effort({ small: 25, full: 1_000 }), seed },
    )
  })

  t.test('Inserts and deletes between pages neither skip nor repeat a remaining record', async (t) => {
    const seen: unknown[] = []
    let cursor = ''
    for (let page = 0; ; page++) {
      const response = await tenant.request('GET', `${list}?order=label.desc.nullslast&limit=7&cursor=${cursor}`)
      seen.push(...response.list().map(({ b }) => b))
      await query(
        tenant.home.adminUrl,
        `insert into items (a, b, label) values (100, ${1000 + page}, 'zz'); delete from items where b = ${1000 + page - 1}`,
      )
      if (response.headers['next-cursor'] === undefined) break
      cursor = String(response.headers['next-cursor'])
    }
    await query(tenant.home.adminUrl, 'delete from items where b >= 1000')
    const stayed = seen.filter((b) => Number(b) < 1000)
    t.same(
      stayed.toSorted((one, other) => Number(one) - Number(other)),
      Array.from({ length: 60 }, (_, n) => n + 1),
    )
  })

  t.test(
    'A page has the cursor of the next one and the count of all matches, and shows only the requested columns',
    async (t) => {
      const first = await tenant.request('GET', `${list}?select=b&a=gte.2&order=b&limit=10&cursor=`, {
        headers: { prefer: 'count=exact' },
      })
      t.equal(first.headers['content-range'], '0-9/47')
      t.same(first.list()[0], { b: 14 })
      const link = /^<([^>]+)>; rel="next"$/.exec(String(first.headers.link))?.[1] ?? ''
      const second = await tenant.request('GET', link)
      t.same(second.list()[0], { b: 24 })
      const csv = await tenant.request('GET', `${list}?select=b&order=b&limit=2&cursor=`, {
        headers: { accept: 'text/csv' },
      })
      t.equal(csv.text, 'b\n1\n2')
      t.ok(csv.headers['next-cursor'])
      const empty = await tenant.request('GET', `${list}?a=eq.-1&cursor=`)
      t.same([empty.text, empty.headers['next-cursor']], ['[]', undefined])
    },
  )

  t.test('Unsupported orders and cursors of other lists are rejected', async (t) => {
    const cursor = String((await tenant.request('GET', `${list}?order=b&limit=1&cursor=`)).headers['next-cursor'])
    const made = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    for (const [search, message] of [
      [`order=b.desc&cursor=${cursor}`, /another order/],
      ['cursor=x', /not the cursor of a page/],
      [`cursor=${made({})}`, /another order/],
      [`order=b&cursor=${made(['b.asc,a.asc', '1', 2])}`, /not the cursor of a page/],
      ['cursor=&offset=1', /cannot be combined with an offset/],
      ['cursor=&select=count()', /aggregates/],
    ] as const) {
      const response = await tenant.request('GET', `${list}?${search}`)
      t.match({ status: response.status, ...response.json() }, { status: 400, code: 'PGRST100', message }, search)
    }
    t.match((await tenant.request('GET', '/rest/v1/marks?cursor=')).json(), {
      code: 'PGRST100',
      message: /no primary key/,
    })
    const odd = await tenant.request('GET', `${list}?order=b&cursor=${made(['b.asc,a.asc', 'x', '1'])}`)
    t.match({ status: odd.status, ...odd.json() }, { status: 400, code: '22P02' })
  })
})
