// Features of media types that the tenant's own functions and aggregates make.
import { response } from './functions.ts'
import { rejected, rows, type Feature, type Scene, type Seen } from './scene.ts'

const notAvailable = (type: string) => rejected(406, 'PGRST107', `None of these media types are available: ${type}`)
const accepting = (path: string, accept: string) => ({ path, headers: { accept } })
const sandboxed = { 'content-security-policy': "sandbox; default-src 'none'", 'x-content-type-options': 'nosniff' }

/** Checks that each path gives this body and type. */
async function gives({ expect }: Scene, wanted: readonly (readonly [path: string, accept: string, seen: Seen])[]) {
  for (const [path, accept, seen] of wanted) await expect(accepting(path, accept), seen)
}

export const media: Feature[] = [
  {
    feature: 'functions that return a media type',
    here: 'same',
    check: async (scene) => {
      const html = response('<p>hello</p>', { 'content-type': 'text/html' })
      await gives(scene, [
        ['/rpc/page', 'text/html', html],
        ['/rpc/page', 'application/xml;q=0.9, text/html', html],
        ['/rpc/page', 'application/json', response('<p>hello</p>')],
        ['/rpc/page', 'image/png', notAvailable('image/png')],
        ['/rpc/no_page', 'text/html', response('', { 'content-type': 'text/html' })],
        ['/rpc/pages', 'text/html', notAvailable('text/html')],
      ])
      const { headers } = await scene.request('GET', '/rpc/page', { headers: { accept: 'text/html' } })
      scene.t.match(headers, sandboxed, 'a browser does not run the page')
    },
  },
  {
    feature: 'images',
    here: 'same',
    check: async ({ t, request }) => {
      const png = Buffer.from('89504e470d0a1a0a00ff', 'hex')
      for (const accept of ['image/png', 'image/avif,image/webp,image/png,*/*;q=0.8', '*/*']) {
        const sent = await request('GET', '/rpc/picture', { headers: { accept } })
        t.match(sent, { status: 200, headers: { 'content-type': 'image/png', 'content-length': '10' } }, accept)
        t.same(sent.bytes, png)
      }
    },
  },
  {
    feature: 'any media type: `*/*`',
    here: 'same',
    check: async (scene) => {
      const any = (type: string) => response('any', { 'content-type': type })
      await gives(scene, [
        ['/rpc/anything', '*/*', any('application/octet-stream')],
        ['/rpc/anything', 'app/bingo', any('application/octet-stream')],
        ['/rpc/anything', 'text/css', any('text/css')],
      ])
    },
  },
  {
    feature: "aggregates of a table's rows",
    here: 'same',
    check: async (scene) => {
      const type = 'application/vnd.titles'
      const titles = (text: string, range: string) => response(text, { range, 'content-type': type })
      await gives(scene, [
        ['/books?author_id=eq.1&order=id.desc', type, titles('Lazy dogs;The quick fox;', '0-1/*')],
        ['/books?author_id=eq.1&order=id&limit=1', type, titles('The quick fox;', '0-0/*')],
        ['/books?id=eq.99', type, titles('', '*/*')],
        ['/rpc/books_of?author=1', type, titles('The quick fox;Lazy dogs;', '0-1/*')],
        ['/books?select=id', type, notAvailable(type)],
        ['/shelves', type, notAvailable(type)],
      ])
      await scene.expect(
        { path: '/rpc/books_of?author=1', headers: { accept: type, prefer: 'count=exact' } },
        response('The quick fox;Lazy dogs;', {
          range: '0-1/2',
          'content-type': type,
          'preference-applied': 'count=exact',
        }),
      )
    },
  },
  {
    feature: 'aggregates of any rows',
    here: 'same',
    check: async (scene) => {
      const type = 'text/tab-separated-values'
      await gives(scene, [
        [
          '/shelves?select=id,label&id=lt.3&order=id',
          type,
          response('1\tlow\n2\thigh\n', { range: '0-1/*', 'content-type': type }),
        ],
        ['/rpc/books_of?author=2&select=id', type, response('3\n', { 'content-type': type })],
      ])
    },
  },
  {
    feature: 'an aggregate instead of a built-in format',
    here: 'same',
    check: async (scene) => {
      const type = 'text/csv; charset=utf-8'
      await gives(scene, [
        ['/shelves?id=eq.1', 'text/csv', response('id;label\n1;low\n', { 'content-type': type })],
        ['/shelves?id=eq.1&select=id', 'text/csv', response('id\n1', { 'content-type': type })],
        ['/shelves?id=eq.1&select=id', 'application/json', rows([{ id: 1 }])],
      ])
    },
  },
]
