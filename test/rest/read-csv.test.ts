// CSV becomes JSON, whose length is charged and bounded: each record repeats the names of the fields.
import t from 'tap'
import { csvToJson, maxCharacters } from '#tenant-runtime/rest/request/read-csv.ts'

t.test('Lines become records with texts and nulls', (t) => {
  t.same(JSON.parse(csvToJson('a,b\r\n1,"x ""y"""\n\nNULL,\n')), [
    { a: '1', b: 'x "y"' },
    { a: null, b: '' },
  ])
  for (const [text, message] of [
    ['', /no line with the names/],
    ['a,b\n1', /same number of fields/],
    ['a\n"x', /does not end/],
    ['a\n"x"y', /followed by text/],
  ] as const)
    t.throws(() => csvToJson(text), { name: 'SyntaxError', message })
  t.end()
})

t.test('What is longer than the text is charged before it is made', (t) => {
  const charged: number[] = []
  const text = `${'n'.repeat(10_000)}\n${'1\n'.repeat(100)}`
  const json = csvToJson(text, (characters) => charged.push(characters))
  const sum = charged.reduce((all, characters) => all + characters, 0)
  t.ok(sum >= json.length - text.length, `${sum} of ${json.length}`)
  t.ok(sum < json.length + 100_000)
  const noRoom = new Error('no room')
  t.throws(
    () =>
      csvToJson(text, () => {
        throw noRoom
      }),
    noRoom,
  )
  t.end()
})

t.test('A small text with a long name does not become a huge JSON', (t) => {
  const name = 'n'.repeat(520_000)
  t.throws(() => csvToJson(`${name}\n${'a\n'.repeat(900)}`), {
    name: 'SyntaxError',
    message: new RegExp(String(maxCharacters)),
  })
  t.end()
})
