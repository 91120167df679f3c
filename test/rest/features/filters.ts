// Features of filtering rows: operators, their negations, lists, trees, searches, paths in JSON.
import { gives, rejected, rows, type Feature, type Scene } from './scene.ts'

const big = '9007199254740993'

/**
 * Checks that each filter finds the books with these last digits, and with `not.` all others whose value is not null.
 */
function finds(...cases: readonly (readonly [filter: string, found: string, others: string])[]): Feature['check'] {
  return async (scene) => {
    for (const [filter, found, others] of cases) {
      await findsIn(scene, filter, found)
      const [column = '', condition = ''] = filter.split(/=(.*)/s, 2)
      await findsIn(scene, `${column}=not.${condition}`, others)
      // The same condition inside a tree.
      await findsIn(scene, `and=(${column}.${inTree(condition)})`, found)
      await findsIn(scene, `or=(${column}.not.${inTree(condition)})`, others)
    }
  }
}

/** Quotes a value that contains a character which ends a condition in a tree. */
function inTree(condition: string): string {
  const [, begin = '', value = ''] = /^(\w+(?:\(\w+\))?\.)(.*)$/s.exec(condition) ?? []
  return begin === 'in.' || !/[,()"]/.test(value) || /^[[{(]/.test(value)
    ? condition
    : `${begin}"${value.replaceAll(/["\\]/g, '\\$&')}"`
}

async function findsIn({ t, request }: Scene, filter: string, found: string): Promise<void> {
  const search = filter
    .split(/=(.*)/s, 2)
    .map((part) => encodeURIComponent(part))
    .join('=')
  const response = await request('GET', `/books?select=id&order=id&${search}`)
  t.equal(response.status, 200, response.text)
  t.equal(
    response.text
      .replaceAll(/[^\d,]/g, '')
      .replace(big, '4')
      .replaceAll(',', ''),
    found,
    filter,
  )
}

export const bad = (
  feature: string,
  path: string,
  code: string,
  message: string,
  details: string | null = null,
  hint: string | null = null,
): Feature => ({ feature, here: 'same', check: gives(path, rejected(400, code, message, { details, hint })) })

export const filters: Feature[] = [
  {
    feature: '`eq`, `neq`',
    here: 'same',
    check: finds(
      ['title=eq.Big', '4', '123'],
      ['title=neq.Big', '123', '4'],
      [`id=eq.${big}`, '4', '123'],
      ['genre=eq.novel', '1', '23'],
      ['available=eq.false', '2', '14'],
      ['price=eq.12345678901234567890.12345', '4', '123'],
    ),
  },
  {
    feature: '`gt`, `gte`, `lt`, `lte`',
    here: 'same',
    check: finds(
      ['pages=gt.80', '13', '24'],
      ['pages=gte.80', '123', '4'],
      ['pages=lt.80', '4', '123'],
      ['pages=lte.80', '24', '13'],
      ['genre=gt.novel', '23', '1'],
    ),
  },
  {
    feature: '`like`, `ilike`, `*` for `%`',
    here: 'same',
    check: finds(
      ['title=like.*dogs', '23', '14'],
      ['title=like.%fox', '1', '234'],
      ['title=ilike.*FOX*', '13', '24'],
      ['title=like.B_g', '4', '123'],
    ),
  },
  {
    feature: '`like`, `match` of a column that is not a text',
    here: 'same',
    check: async ({ expect }) => {
      const noOperator = (operands: string) =>
        rejected(404, '42883', `operator does not exist: ${operands}`, {
          hint: 'No operator matches the given name and argument types. You might need to add explicit type casts.',
        })
      await expect({ path: '/books?pages=like.1*' }, noOperator('integer ~~ unknown'))
      await expect({ path: '/books?genre=match.^[np]' }, noOperator('genre ~ unknown'))
      await expect({ path: '/books?tags=ilike(any).{a,b}' }, noOperator('text[] ~~* unknown'))
    },
  },
  {
    feature: '`match`, `imatch`',
    here: 'same',
    check: finds(['title=match.^(The|Big)', '14', '23'], ['title=imatch.FOX', '13', '24']),
  },
  {
    feature: '`in`',
    here: 'same',
    check: finds(
      ['id=in.(1,3)', '13', '24'],
      [`id=in.(${big})`, '4', '123'],
      ['genre=in.(novel,poetry)', '12', '3'],
      ['id=in.()', '', '1234'],
      ['id=in.(  )', '', '1234'],
      ['id=in.( 1, 3 ) ', '13', '24'],
    ),
  },
  {
    feature: '`in` with unusual quoting',
    here: 'same',
    check: async ({ t, request, tenant }) => {
      const odd = ['a,b', 'c"d', '"e"', 'f(g)', '(h', 'i\\j', "k'l", '', 'm n', '{o}', '"p', 'q"', 'null']
      const client = tenant.client('service')
      t.equal((await client.from('lines').insert(odd.map((entry, at) => ({ entry, at })))).status, 201)
      const found = async (values: string) =>
        (await request('GET', `/lines?select=at&order=at&entry=in.${encodeURIComponent(values)}`))
          .list()
          .map(({ at }) => at)
      t.same(
        await found(`(${odd.map((value) => `"${value.replaceAll(/["\\]/g, '\\$&')}"`).join(',')})`),
        odd.map((_, n) => n),
        'each in quotes, escaped',
      )
      for (const [n, value] of odd.entries())
        t.same(await found(`("${value.replaceAll(/["\\]/g, '\\$&')}")`), [n], value)
      t.same(await found(`(c"d,m n,k'l,{o},null)`), [1, 6, 8, 9, 12], 'without quotes, what needs none')
      t.same(
        (await client.from('lines').select('at').in('entry', ['a,b', 'c"d', 'f(g)', 'm n', '']).order('at')).data,
        [0, 1, 3, 7, 8].map((at) => ({ at })),
        "as the client's writes them",
      )
    },
  },
  {
    feature: '`is`: null, not_null, true, false, unknown',
    here: 'same',
    check: finds(
      ['isbn=is.null', '3', '124'],
      ['isbn=is.not_null', '124', '3'],
      ['available=is.true', '14', '23'],
      ['available=is.false', '2', '134'],
      ['available=is.unknown', '3', '124'],
      ['isbn=is.NULL', '3', '124'],
    ),
  },
  { feature: '`isdistinct`', here: 'same', check: finds(['isbn=isdistinct.i-1', '234', '1']) },
  {
    feature: 'full-text search of a tsvector: `fts`, `plfts`, `phfts`, `wfts`, with a language',
    here: 'same',
    check: finds(
      ['words=fts.fox', '13', '24'],
      ['words=fts(english).foxes', '13', '24'],
      ['words=plfts(english).the lazy dog', '2', '134'],
      ['words=phfts(english).quick fox', '1', '234'],
      ['words=wfts(english).fox -quick', '3', '124'],
      ['words=wfts(english).lazy or quick', '12', '34'],
    ),
  },
  {
    feature: 'full-text search of texts and JSON',
    here: 'same',
    check: finds(
      ['title=fts(english).fox', '13', '24'],
      ['extra=plfts(simple).x', '1', '24'],
      ['title=fts(simple).foxes', '3', '124'],
    ),
  },
  bad('a search that is malformed', '/books?words=fts.a%20b', '42601', 'syntax error in tsquery: "a b"'),
  bad('a search that ends with an escape', '/books?words=fts.a%5C', '42601', 'there is no escaped character: "a\\"'),
  bad(
    'a search in an unknown language',
    '/books?words=fts(klingon).a',
    '42704',
    'text search configuration "klingon" does not exist',
  ),
  {
    feature: '`cs`, `cd`, `ov` of arrays',
    here: 'same',
    check: finds(
      ['tags=cs.{red}', '13', '2'],
      ['tags=cs.{"with, comma",red}', '1', '23'],
      ['tags=cd.{red,blue,green}', '23', '1'],
      ['tags=ov.{blue,green}', '3', '12'],
      ['tags=cs.{}', '123', ''],
    ),
  },
  {
    feature: '`cs`, `cd` of JSON',
    here: 'same',
    check: finds(
      ['extra=cs.{"a":1}', '1', '24'],
      ['extra=cd.{"a":2,"b":[1,2],"c":3}', '2', '14'],
      [`extra=cs.{"big":${big}}`, '4', '12'],
    ),
  },
  {
    feature: '`cs`, `cd`, `ov`, `sl`, `sr`, `nxr`, `nxl`, `adj` of ranges',
    here: 'same',
    check: finds(
      ['years=cs.[1995,1996]', '1', '24'],
      ['years=cd.[1980,2005)', '14', '2'],
      ['years=ov.[1999,2001)', '12', '4'],
      ['years=sl.(2004,2007)', '1', '24'],
      ['years=sr.(1980,1989)', '12', '4'],
      ['years=nxr.[1980,2000)', '1', '24'],
      ['years=nxl.[2000,2020)', '2', '14'],
      ['years=adj.[2010,2020)', '2', '14'],
    ),
  },
  {
    feature: '`(any)`, `(all)`: eq, gt, gte, lt, lte, like, ilike, match, imatch',
    here: 'same',
    check: finds(
      ['id=eq(any).{1,2}', '12', '34'],
      ['pages=gt(all).{80,100}', '13', '24'],
      ['pages=gte(any).{120,400}', '13', '24'],
      ['pages=lt(all).{120,400}', '24', '13'],
      ['pages=lte(any).{1,80}', '24', '13'],
      ['title=like(any).{The*,*dogs}', '123', '4'],
      ['title=like(all).{F*,*dogs}', '3', '124'],
      ['title=ilike(any).{the*,big}', '14', '23'],
      ['title=match(any).{^The,^Big}', '14', '23'],
      ['title=imatch(all).{fox,dog}', '3', '124'],
    ),
  },
  bad(
    '`(any)` with an operator that does not support it',
    '/books?id=neq(any).{1}',
    'PGRST100',
    'Invalid query parameter "id": neq does not allow "(any)" at character 9 of "neq(any).{1}".',
  ),
  {
    feature: 'several filters must all match, also of one column',
    here: 'same',
    check: async (scene) => {
      await scene.expect({ path: '/books?select=id&pages=gt.50&pages=lt.200&available=is.true' }, rows([{ id: 1 }]))
    },
  },
  {
    feature: '`or`, `and`, `not.or`, `not.and`, nested',
    here: 'same',
    check: async (scene) => {
      for (const [filter, found] of [
        ['or=(id.eq.1,title.eq.Big)', '14'],
        ['and=(id.lt.4,pages.gt.100)', '13'],
        ['not.or=(id.eq.1,title.eq.Big)', '23'],
        ['not.and=(id.lt.4,pages.gt.100)', '24'],
        ['or=(id.eq.1,and(pages.lt.100,not.or(title.eq.Big,id.eq.3)))', '12'],
        ['or=(id.in.(1,2),tags.cs.{blue})', '123'],
        ['or=(title.eq."Big",title.like."*,*")', '4'],
        ['or=(tags.cs.{"with, comma"},years.eq.[2000,2010),size.is.null)', '124'],
        ['or=( id.eq.1 , id.eq.2 )', '12'],
        ['and= ( and ( id.in.( 1, 2, 3 ) , id.lt.3 ) , not.or ( id .eq.2 , id.eq.3 ) )', '1'],
        ['or=(not.and(id.gt.1,id.lt.9),id.not.in.(1,2,3))', '14'],
        ['or=(title.not.like.*dogs,isbn.is.null)', '134'],
        ['and=(or(id.eq.1,id.eq.2),or(pages.eq.80,pages.eq.1))', '2'],
        ['or=(words.fts(english).fox,words.plfts.big)', '134'],
      ] as const)
        await findsIn(scene, filter, found)
    },
  },
  {
    feature: 'JSON columns in filters and in trees',
    here: 'same',
    check: async (scene) => {
      for (const [filter, found] of [
        ['extra->>a=eq.1', '1'],
        ['extra->a=gt.1', '2'],
        ['extra->b->>c=eq.x', '1'],
        ['extra->b->1=eq.2', '2'],
        ['extra->>a=in.(1,2)', '12'],
        ['extra->>a=in.()', ''],
        ['extra->>a=not.in.()', '1234'],
        ['extra->b=cs.[2]', '2'],
        ['extra->a=is.null', '34'],
        [`extra->big=eq.${big}`, '4'],
        ['or=(extra->>a.eq.2,extra->b->>c.eq.x)', '12'],
        ['and=(extra->a.gte.1,extra->b->>c.is.null)', '2'],
        ['extra->>"a"=eq.1', '1'],
      ] as const)
        await findsIn(scene, filter, found)
    },
  },
  {
    feature: 'composite and array columns in filters',
    here: 'same',
    check: async (scene) => {
      for (const [filter, found] of [
        ['size->width=gte.5', '1'],
        ['size->>height=eq.2', '3'],
        ['tags->>0=eq.red', '13'],
        ['or=(size->>width.eq.1.5,tags->>1.eq."with, comma")', '13'],
      ] as const)
        await findsIn(scene, filter, found)
    },
  },
  {
    feature: 'columns with special characters in their names',
    here: 'same',
    check: async ({ expect }) => {
      for (const filter of [
        '"a,b"=eq.1',
        '"c.d"=eq.dot',
        '"e\\"f"=eq.quote',
        'g h=eq.space',
        '"(i)"=eq.paren',
        '"j:k"=like.col*',
        '"select"=eq.sel',
        'or=("g h".eq.space,"c.d".eq."a,b")',
        'and=("(i)".eq.paren,"j:k".eq.colon)',
      ]) {
        const [name = '', value = ''] = filter.split(/=(.*)/s, 2)
        await expect(
          { path: `/odd%20names?select=is_new&${encodeURIComponent(name)}=${encodeURIComponent(value)}` },
          rows([{ is_new: 'new' }]),
        )
      }
    },
  },
]
