// The headers with which browsers protect the console and its sessions from other pages.
import t from 'tap'
import { startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t, { control: false })

t.test('No response can be shown in a frame, is sniffed, or sends its address to other sites', async (t) => {
  for (const path of ['/', '/v1/tenants', '/v1/nothing', '/nothing', '/health', '/docs/', '/openapi.json']) {
    const { headers } = await api.call('GET', path)
    t.match(
      headers,
      { 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer', 'x-frame-options': 'DENY' },
      path,
    )
    t.match(headers['content-security-policy'], "frame-ancestors 'none'", path)
    t.match(headers['x-request-id'], /^[0-9a-f-]{36}$/, path)
  }
})

t.test('The console loads only its own files, and has no inline script or style', async (t) => {
  const page = await api.call('GET', '/', { key: null })
  t.match(page.headers['content-security-policy'], "default-src 'self';")
  t.notMatch(page.headers['content-security-policy'], /unsafe|https?:|data:|\*/)
  t.match(page.headers, { 'cache-control': 'no-cache', 'content-type': /^text\/html/ })
  t.notMatch(page.text, /<style|style=|<script(?![^>]*src=)|\son\w+=|https?:\/\//)
  const files = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => String(path))
  t.same(files.length, 2)
  for (const path of files) {
    const file = await api.call('GET', path, { key: null, headers: { 'accept-encoding': 'gzip, br' } })
    t.match(file, {
      status: 200,
      headers: { 'cache-control': 'public, max-age=31536000, immutable', 'content-encoding': 'br' },
    })
  }
})

t.test('Only files of the console are served', async (t) => {
  for (const path of [
    'nothing.js',
    '..%2fpackage.json',
    '%2e%2e%2fpackage.json',
    '.',
    'index',
    '%00.js',
    'app-.js/../x',
  ])
    t.same((await api.call('GET', `/console/${path}`, { key: null })).status, 404, path)
})

t.test('Responses of the API are data that no page runs', async (t) => {
  t.same(
    (await api.call('GET', '/v1/tenants')).headers['content-security-policy'],
    "default-src 'none'; frame-ancestors 'none'",
  )
})
