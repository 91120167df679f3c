// Features of the bodies of writes other than JSON, of defaults, and of records that a PUT does not name.
import { json, rejected, type Feature, type Request } from './scene.ts'
import { changed, representation, stored } from './writing.ts'

const send = (method: string, path: string, type: string, body: string): Request => ({
  method,
  path,
  body,
  headers: { ...representation, 'content-type': type },
})
const form = 'application/x-www-form-urlencoded'
const applied = 'return=representation'
const byDefault = { prefer: 'missing=default, return=representation' }
const appliedDefault = byDefault.prefer

export const bodies: Feature[] = [
  {
    feature: 'bodies of type text/csv',
    here: 'same',
    check: async (scene) => {
      const { expect } = scene
      await expect(
        send(
          'POST',
          '/shelves?select=id,label,hall',
          'text/csv',
          'id,label,hall\r\n80,"a ""b"", c",NULL\r\n81,"two\nlines",\r\n',
        ),
        changed(201, '*/*', applied, [
          { id: 80, label: 'a "b", c', hall: null },
          { id: 81, label: 'two\nlines', hall: '' },
        ]),
      )
      await expect(send('POST', '/shelves', 'text/csv', 'id,label'), changed(201, '*/*', applied, []))
      await expect(
        send('POST', '/notes?select=owner,text,rank', 'text/csv', 'owner,text,rank\nada,x,1.5\n'),
        changed(201, '*/*', applied, [{ owner: 'ada', text: 'x', rank: 1.5 }]),
      )
      for (const [body, details] of [
        ['id,label\n82', 'All lines must have same number of fields'],
        ['id,label\n82,"x', 'A quoted value of the CSV does not end.'],
        ['id,label\n82,"x"y', 'A quoted value of the CSV is followed by text.'],
      ] as const)
        await expect(
          send('POST', '/shelves', 'text/csv', body),
          rejected(400, 'PGRST102', 'The body is not valid.', { details }),
        )
      await stored(scene, 'select count(*)::int as n from shelves where id > 81 and id < 90', [{ n: 0 }])
    },
  },
  {
    feature: 'bodies of type application/x-www-form-urlencoded',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        send('POST', '/shelves?select=id,label', form, 'id=83&label=a+b%26c'),
        changed(201, '*/*', applied, [{ id: 83, label: 'a b&c' }]),
      )
      await expect(
        send('PATCH', '/shelves?id=eq.83&select=id,hall', form, 'hall=west'),
        changed(200, '0-0/*', applied, [{ id: 83, hall: 'west' }]),
      )
      await expect(
        send('POST', '/notes?select=text,rank', form, 'owner=ada&text=5&rank=5'),
        changed(201, '*/*', applied, [{ text: '5', rank: 5 }]),
      )
      await expect(
        send('POST', '/notes', form, 'owner=ada&text=x&rank=high'),
        rejected(400, '22P02', 'Field "rank" must be a number.'),
      )
    },
  },
  {
    feature: '`missing=default` with `columns`, and of a domain',
    here: 'same',
    check: async ({ expect }) => {
      await expect(
        {
          method: 'POST',
          path: '/defaults?columns=id,rank,label&select=id,rank,label',
          body: [{ id: 1 }, { id: 2, rank: 5 }, { id: 3, label: null }],
          headers: byDefault,
        },
        changed(201, '*/*', appliedDefault, [
          { id: 1, rank: 666, label: 'none' },
          { id: 2, rank: 5, label: 'none' },
          { id: 3, rank: 666, label: null },
        ]),
      )
      await expect(
        { method: 'POST', path: '/defaults?columns=id,tags&select=id,tags', body: { id: 4 }, headers: byDefault },
        changed(201, '*/*', appliedDefault, [{ id: 4, tags: ['a', 'b'] }]),
      )
    },
  },
  {
    feature: '`missing=default` of an update',
    here: 'same',
    check: async ({ expect }) => {
      const patch = { method: 'PATCH', path: '/defaults?id=eq.2&columns=rank,label,tags&select=rank,label,tags' }
      await expect(
        { ...patch, body: { label: 'given' }, headers: byDefault },
        changed(200, '0-0/*', appliedDefault, [{ rank: 666, label: 'given', tags: ['a', 'b'] }]),
      )
      await expect(
        { ...patch, body: { label: 'given' }, headers: representation },
        changed(200, '0-0/*', applied, [{ rank: null, label: 'given', tags: null }]),
      )
    },
  },
  {
    feature: 'full-text search of a domain over `tsvector`',
    here: 'same',
    check: async ({ t, request }) => {
      await request('POST', '/defaults', { body: { id: 9, words: "'cat':1 'fat':2" } })
      for (const filter of ['fts.cat', 'plfts(english).fat cats', 'wfts.cat', 'not.phfts.dog'])
        t.same((await request('GET', `/defaults?words=${filter}&select=id`)).list(), [{ id: 9 }], filter)
    },
  },
  {
    feature: 'PUT of several records: the one with the key counts',
    here: 'same',
    check: async (scene) => {
      const put = (records: object[]): Request => ({
        method: 'PUT',
        path: '/shelves?id=eq.85&select=id,label',
        body: records,
        headers: representation,
      })
      const [one, other] = [
        { id: 85, label: 'one' },
        { id: 86, label: 'other' },
      ]
      await scene.expect(put([one, other]), {
        status: 201,
        headers: { 'content-type': json, 'preference-applied': applied },
        body: [one],
      })
      await stored(scene, 'select id from shelves where id in (85, 86)', [{ id: 85 }])
      await scene.expect(
        put([other, other]),
        rejected(400, 'PGRST115', 'Payload values do not match URL in primary key column(s)'),
      )
    },
  },
]
