// verify-invoice computes every figure of an invoice again from the exported hours and reports each difference.
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import type { InvoiceBody } from '#control-plane/billing/invoice-body.ts'
import { startBilledApi } from './support/billed-api.ts'

const api = await startBilledApi(t)
const { month, next } = api
const after = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 1))
const [text, nextText] = [month, next].map((at) => at.toISOString().slice(0, 7))
const tenant = await api.create()
const thisHour = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000)
const folder = t.testdir({})
const program = new URL('../../control-plane/src/billing/verify-main.ts', import.meta.url).pathname

await api.count(tenant.tenant_id, thisHour, 1_234_567)
await api.closeUntil(new Date(next.getTime() + 2 * 3_600_000))
await api.makeInvoices()
await api.count(tenant.tenant_id, thisHour, 1_111_111, 'gateway-that-was-cut-off')
await api.count(tenant.tenant_id, next, 55_555)
await api.call('POST', `/v1/tenants/${tenant.tenant_id}/adjustments`, {
  body: { description: 'goodwill', amount: '-12.5' },
})
await api.closeUntil(new Date(next.getTime() + 4 * 3_600_000))
await api.closeUntil(new Date(after.getTime() + 2 * 3_600_000))
await api.makeInvoices()

const textOf = async (path: string, accept = 'application/json') => {
  const response = await api.call('GET', `/v1/tenants/${tenant.tenant_id}/${path}`, { headers: { accept } })
  if (response.status !== 200) throw new Error(`${path} failed with ${response.status}: ${response.text}`)
  return response.text
}
const files = {
  first: await textOf(`invoices/${text}`),
  second: await textOf(`invoices/${nextText}`),
  usage: await textOf(`usage/${text}?granularity=hour`),
  nextUsage: await textOf(`usage/${nextText}?granularity=hour`, 'text/csv'),
}

/** Runs verify-invoice with files of these contents. */
async function verify(...contents: string[]): Promise<{ code: number; output: string }> {
  const paths = contents.map((_, nth) => join(folder, `file-${nth}`))
  await Promise.all(contents.map((content, nth) => writeFile(paths[nth] ?? '', content)))
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...paths], (error, output, errors) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: output + errors }),
    )
  })
}

t.test('verify-invoice accepts both invoices, with corrections, from JSON and CSV', async (t) => {
  t.match(await verify(files.first, files.usage), {
    code: 0,
    output: /every recomputed figure is the same/,
  })
  t.ok((JSON.parse(files.second) as InvoiceBody).lines.some(({ correction }) => correction))
  t.match(await verify(files.second, files.usage, files.nextUsage), { code: 0, output: /every recomputed figure/ })
})

t.test(
  'verify-invoice accepts an older invoice without adjustments, and reports a missing or changed adjustment',
  async (t) => {
    t.match(await verify(files.first.replace(',"adjustments":[]', ''), files.usage), {
      code: 0,
      output: /every recomputed figure/,
    })
    const invoice = JSON.parse(files.second) as InvoiceBody
    const given = invoice.basis.adjustments?.[0]
    if (given === undefined) throw new Error('the invoice has no adjustment')
    const changed = (adjustments: object[]) => JSON.stringify({ ...invoice, basis: { ...invoice.basis, adjustments } })
    const lines = invoice.lines.length
    t.match(await verify(changed([]), files.usage, files.nextUsage), {
      code: 1,
      output: new RegExp(`there are ${lines} lines, but ${lines - 1} were computed`),
    })
    t.match(await verify(changed([{ ...given, amount: '-12.500001' }]), files.usage, files.nextUsage), {
      code: 1,
      output: new RegExp(`line ${lines}: exact_amount is -12.500000, but -12.500001 was computed`),
    })
    t.match(await verify(changed([{ ...given, description: 'bad will' }]), files.usage, files.nextUsage), {
      code: 1,
      output: /adjustment_text is goodwill, but bad will was computed/,
    })
  },
)

t.test('verify-invoice names missing and changed data', async (t) => {
  t.match(await verify(files.second, files.nextUsage), { code: 1, output: /NOT verified/ })
  t.match(await verify(files.first, files.usage.replace('"1234567"', '"1234566"')), {
    code: 1,
    output: new RegExp(`${text}: the exported hours do not have the hash`),
  })
  t.match(await verify(files.second, files.usage.replace('"1111111"', '"1111112"'), files.nextUsage), {
    code: 1,
    output: /correction 1 does not have its hash/,
  })
  const invoice = JSON.parse(files.first) as InvoiceBody
  t.match(await verify(JSON.stringify({ ...invoice, total: '0.000001' }), files.usage), {
    code: 1,
    output: new RegExp(`total is 0.000001, but ${invoice.total} was computed`),
  })
  t.match(
    await verify(
      files.first.replace('"percent":"19"', '"percent":"7"').replace('"percent":"20.5"', '"percent":"7"'),
      files.usage,
    ),
    { code: 1, output: /tax_rate is/ },
  )
  t.match(await verify(files.first.replace('"resource":"requests"', '"resource":"egress"'), files.usage), {
    code: 1,
    output: /resource is egress, but requests was computed/,
  })
})

t.test('verify-invoice rejects files that are not an invoice or an hourly export', async (t) => {
  t.match(await verify(files.first), { code: 2, output: /usage: verify-invoice/ })
  t.match(await verify(files.usage, files.usage), { code: 2, output: /not an invoice/ })
  t.match(await verify(files.first, await textOf(`usage/${text}`)), {
    code: 2,
    output: /The file is not an export of usage by hour/,
  })
  t.match(await verify(files.first, await textOf(`usage/${text}?granularity=hour&resource=egress`)), {
    code: 2,
    output: /only some resources/,
  })
})
