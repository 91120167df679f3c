// Texts that a user may send as a path: a public list of strings that broke other services, and strings that could
// break this one: Unicode of every kind, traversal, percent forms, names of other systems, and the limits in bytes.
import naughty from 'big-list-of-naughty-strings' with { type: 'json' }

/** Returns the corpus. `isTaken` selects from the large groups by index. */
export function pathCorpus(isTaken: (nth: number) => boolean): string[] {
  const many = [...naughty.map(String), ...unicode(), ...names, ...separators()]
  return [...new Set([...many.filter((_, nth) => isTaken(nth)), ...traversal, ...percents, ...sizes])]
}

function unicode(): string[] {
  const embed = (codes: Iterable<number>) => [...codes].map((code) => `a${String.fromCodePoint(code)}b`)
  const range = (from: number, to: number, step = 1) =>
    Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, nth) => from + nth * step)
  return [
    // Control characters, invisible ones and those that change the text direction, and then some of every plane.
    ...embed([
      ...range(0x00, 0x1f),
      ...range(0x7f, 0xa0),
      0xad,
      ...range(0x200b, 0x200f),
      ...range(0x2028, 0x202f),
      ...range(0x2060, 0x206f),
    ]),
    ...embed([0xfeff, 0xfffd, 0xfffe, 0xffff, 0xfdd0, 0xfe0f, 0xe000, 0xe0001, 0x1fffe, 0x10ffff, 0x1f468]),
    ...embed(range(0xa1, 0x10ffff, 9973).filter((code) => code < 0xd800 || code > 0xdfff)),
    '\ud800',
    'a\ud800',
    '\udc00b',
    'a\udc00\ud800b',
    `e${'\u0301'.repeat(200)}`,
    // Two encodings of the same letter, which must remain two paths.
    'é',
    'e\u0301',
    'Å',
    '\u212b',
    'A\u030a',
    '한',
    '\u1112\u1161\u11ab',
    'ﬁ',
    'fi',
    'İ',
    'i\u0307',
    'ı',
    'I',
    'i',
    'ß',
    'ss',
    'SS',
    'ẞ',
    'K',
    '\u212a',
    'ſ',
    'file',
    'FILE',
    'File',
  ]
}

const traversal = [
  '.',
  '..',
  '...',
  './a',
  '../a',
  'a/.',
  'a/..',
  'a/./b',
  'a/../b',
  'a/b/../../../c',
  '.../a',
  '..a',
  'a..',
  '..;/a',
  '../../../../etc/passwd',
  '/etc/passwd',
  '/',
  '//',
  '///a',
  '//host/a',
  'a//b',
  'a/',
  '..\\a',
  '..\\..\\windows\\win.ini',
  'a\\b',
  '\\',
  '\\\\host\\a',
  'C:\\a',
  'C:/a',
  'file:///etc/passwd',
  'http://host/a',
  '．．／a',
  '‥/a',
  '．/a',
  'a∕b',
  'a⁄b',
  'a＼b',
  '~root/a',
  '~',
  'store',
  'tmp',
  'tmp/a',
  '00',
  '00/00000000-0000-4000-8000-000000000000',
  '..%2fa',
  '..%5ca',
  '%2e%2e',
  '%2e%2e/a',
  '%2e',
  'a/%2e%2e/b',
  '.%2e/a',
  '%252e%252e/a',
  '%c0%ae%c0%ae/a',
  '%e0%80%ae/a',
]

const percents = [
  '%',
  '%%',
  '%4',
  '%zz',
  'a%',
  '%u0041',
  '%00',
  'a%00.png',
  '%0a',
  '%0d%0aSet-Cookie:%20a=b',
  '%20',
  '+',
  '%2b',
  '%2f',
  'a%2fb',
  '%2F',
  '%5c',
  '%7f',
  '%c2%80',
  '%c2%a0',
  '%c3%a9',
  '%c3%28',
  '%ff',
  '%fe%ff',
  '%ed%a0%80',
  '%ed%b0%80',
  '%f4%90%80%80',
  '%f8%88%80%80%80',
  '%c0%af',
  '%e2%80%ae',
  '%25',
  '%2525',
  '%3f',
  '%23',
  'a?b',
  'a#b',
  '?',
  '#',
  'a?b#c',
  'a;b',
  'a&b=c',
]

function separators(): string[] {
  return [
    '',
    ' ',
    ' a',
    'a ',
    'a.',
    '.a',
    ...'! " $ \' ( ) * , - : < = > @ [ ] ^ _ ` { | } ~'.split(' ').map((sign) => `a${sign}b`),
  ]
}

const names = [
  'CON',
  'PRN',
  'AUX',
  'NUL',
  'COM1',
  'LPT9',
  'con.txt',
  'a:b',
  'a::$DATA',
  'desktop.ini',
  '.DS_Store',
  '.htaccess',
  '.git/config',
  'x.lnk',
  '__proto__',
  'constructor',
  'prototype/a',
  'toString',
  'hasOwnProperty',
  'sign',
  'sign/a',
  'public/a',
  'authenticated/a',
  'info/a',
  'list',
  'list-v2',
  'move',
  'copy',
  'upload/sign/a',
  'render/image/a',
  '_',
  '%_',
  '100%',
  'a_b',
  "'; drop table storage_objects; --",
  '{{tenant_id}}',
  // oxlint-disable-next-line no-template-curly-in-string -- the path itself has these characters
  '${a}',
  '$(id)',
  '`id`',
  'null',
  'undefined',
  'NaN',
  '0',
  '-1',
  '1e400',
  'true',
  '[]',
  '{}',
]

const sizes = [
  'a'.repeat(255),
  'a'.repeat(256),
  'a'.repeat(1023),
  'a'.repeat(1024),
  'a'.repeat(1025),
  'é'.repeat(512),
  `${'é'.repeat(512)}a`,
  '💩'.repeat(256),
  `${'💩'.repeat(256)}a`,
  '한'.repeat(341),
  '한'.repeat(342),
  `${'a/'.repeat(511)}bb`,
  `${'a/'.repeat(512)}b`,
  'a'.repeat(5_000),
  'é'.repeat(3_000),
]

export type Form = 'raw' | 'encoded' | 'double'

/** Returns the text in the form of a request's target, one character per byte. */
export function written(text: string, form: Form): string {
  if (form === 'raw') return Buffer.from(text).toString('latin1')
  const once = [...bytesOf(text)]
    .map((byte) =>
      /[A-Za-z0-9_.~/-]/.test(String.fromCharCode(byte))
        ? String.fromCharCode(byte)
        : `%${byte.toString(16).padStart(2, '0')}`,
    )
    .join('')
  return form === 'encoded' ? once : once.replaceAll('%', '%25')
}

/** Yields the UTF-8 bytes of the text, also of lone surrogates, which `Buffer` would replace. */
function* bytesOf(text: string): Generator<number> {
  for (const character of text) {
    const code = character.codePointAt(0) ?? 0
    if (code >= 0xd800 && code <= 0xdfff)
      yield* [0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)]
    else yield* Buffer.from(character)
  }
}

/**
 * Returns the meaning of the target, decoded once, or undefined if it has none. Trailing spaces belong to the request
 * line.
 */
export function meant(target: string): string | undefined {
  const end = target.search(/[?#]| +$/)
  const bytes = (end < 0 ? target : target.slice(0, end)).replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  )
  if (/%(?![0-9a-f]{2})/i.test(end < 0 ? target : target.slice(0, end))) return undefined
  const text = Buffer.from(bytes, 'latin1').toString('utf8')
  return Buffer.from(text).toString('latin1') === bytes ? text : undefined
}
