// Commands that read usage and invoices.
import { bodyOf, type ControlClient, type ResponseBody } from '@tenantry/client'
import type { Command } from 'commander'
import { writeFile } from 'node:fs/promises'
import { action, type Call } from '../call.ts'
import { usageError } from '../terminal/exit-codes.ts'
import { formatMembers, type Column } from '../terminal/table.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { readRows, withPaging } from './lists.ts'
import { findTenantId } from './tenant-reference.ts'

type Summary = ResponseBody<'/v1/tenants/{id}/invoices', 'get'>['invoices'][number]
type TenantUsage = ResponseBody<'/v1/usage', 'get'>['tenants'][number]

const mediaTypes = { json: 'application/json', csv: 'text/csv', pdf: 'application/pdf' } as const

const summaryColumns: readonly Column<Summary>[] = [
  { title: 'MONTH', value: ({ month }) => month },
  { title: 'NUMBER', value: ({ number }) => number },
  { title: 'STATE', value: ({ state }) => state },
  { title: 'PAYABLE', value: ({ payable, currency }) => `${payable} ${currency}` },
  { title: 'CREATED', value: ({ created_at: at }) => at },
  { title: 'ID', value: ({ invoice_id: id }) => id },
]

/** Adds `usage` and the group `invoices`. */
export function addBillingCommands(program: Command, terminal: Terminal): void {
  withPaging(program.command('usage [tenant]').description('show the usage of a tenant in a month, or of all tenants'))
    .option('--month <month>', 'YYYY-MM; the current month by default')
    .option('--granularity <unit>', 'hour or day: a series instead of sums')
    .option('--resource <name>', 'only this resource, such as storage')
    .option('--csv', 'as CSV')
    .action(
      action(terminal, (call, tenant?: string) =>
        tenant === undefined ? usageOfAll(call) : usageOfTenant(call, tenant),
      ),
    )
  const invoices = program.command('invoices').description('read and make invoices')
  withPaging(invoices.command('list <tenant>').description("list a tenant's invoices")).action(action(terminal, list))
  invoices
    .command('get <tenant> <invoice>')
    .description('one invoice, by its ID or month, or `upcoming`')
    .option('--format <format>', 'json, csv or pdf')
    .option('-o, --output <file>', 'write it to a file')
    .action(action(terminal, get))
  invoices
    .command('close <tenant> <month>')
    .description("make a month's invoice")
    .option('--draft', 'a draft, which may be made again')
    .action(
      action(terminal, async (call, reference = '', month = '') => {
        const client = await call.control()
        const id = await findTenantId(client, reference)
        const body = { month, final: !call.isSet('draft') }
        call.output.one(
          bodyOf(await client.POST('/v1/tenants/{id}/invoices/close', { params: { path: { id } }, body })),
        )
      }),
    )
  invoices
    .command('void <tenant> <invoice>')
    .description('make a final invoice void')
    .requiredOption('--reason <text>', 'why')
    .action(
      action(terminal, async (call, reference = '', invoice = '') => {
        const client = await call.control()
        const path = { id: await findTenantId(client, reference), invoice }
        const body = { reason: call.text('reason') ?? '' }
        call.output.one(
          bodyOf(await client.POST('/v1/tenants/{id}/invoices/{invoice}/void', { params: { path }, body })),
        )
      }),
    )
}

async function usageOfTenant(call: Call, reference: string): Promise<void> {
  const client = await call.control()
  const id = await findTenantId(client, reference)
  const month = call.text('month')
  const granularity = call.text('granularity')
  const resource = call.text('resource')
  // The API checks the values and states what is allowed.
  const query = {
    ...(granularity === undefined ? {} : { granularity: granularity as 'hour' }),
    ...(resource === undefined ? {} : { resource: resource as 'storage' }),
  }
  if (call.isSet('csv')) {
    call.output.text(await usageCsv(client, id, month, query))
    return
  }
  const body =
    month === undefined
      ? bodyOf(await client.GET('/v1/tenants/{id}/usage', { params: { path: { id }, query } }))
      : bodyOf(await client.GET('/v1/tenants/{id}/usage/{month}', { params: { path: { id, month }, query } }))
  call.output.one(body, () =>
    'resources' in body
      ? formatMembers({ tenant: body.tenant_id, month: body.month, complete: !body.incomplete, ...body.resources })
      : formatMembers(body),
  )
}

async function usageCsv(
  client: ControlClient,
  id: string,
  month: string | undefined,
  query: { granularity?: 'hour'; resource?: 'storage' },
): Promise<string> {
  const options = { headers: { accept: mediaTypes.csv }, parseAs: 'text' } as const
  const { data } =
    month === undefined
      ? await client.GET('/v1/tenants/{id}/usage', { params: { path: { id }, query }, ...options })
      : await client.GET('/v1/tenants/{id}/usage/{month}', { params: { path: { id, month }, query }, ...options })
  return data ?? ''
}

async function usageOfAll(call: Call): Promise<void> {
  const client = await call.control()
  const month = call.text('month')
  if (call.isSet('csv') || call.text('granularity') !== undefined || call.text('resource') !== undefined)
    throw usageError('--csv, --granularity and --resource need a tenant.')
  const filter = month === undefined ? {} : { month }
  const rows = await readRows(
    call,
    async (page) => bodyOf(await client.GET('/v1/usage', { params: { query: { ...filter, ...page } } })),
    (page) => page.tenants,
  )
  const names = [...new Set(rows.flatMap(({ amounts }) => Object.keys(amounts)))].toSorted()
  const columns: Column<TenantUsage>[] = [
    { title: 'TENANT', value: ({ name }) => name },
    { title: 'ID', value: ({ tenant_id: id }) => id },
    ...names.map((name) => ({
      title: name.toUpperCase(),
      value: ({ amounts }: TenantUsage) => (amounts as Record<string, string | undefined>)[name],
    })),
  ]
  call.output.rows(rows, columns, 'No usage.')
}

async function list(call: Call, reference = ''): Promise<void> {
  const client = await call.control()
  const id = await findTenantId(client, reference)
  const rows = await readRows(
    call,
    async (query) => bodyOf(await client.GET('/v1/tenants/{id}/invoices', { params: { path: { id }, query } })),
    (page) => page.invoices,
  )
  call.output.rows(
    rows,
    summaryColumns,
    'No invoices. Show the current month with: tenantry invoices get TENANT upcoming',
  )
}

async function get(call: Call, reference = '', invoice = ''): Promise<void> {
  const output = call.text('output')
  const extension = /\.(\w+)$/.exec(output ?? '')?.[1]
  const text = call.text('format') ?? extension ?? (call.output.isJson || output === undefined ? 'json' : '')
  const format = (['json', 'csv', 'pdf'] as const).find((one) => one === text)
  if (format === undefined) throw usageError(`Invalid format "${text.slice(0, 100)}". Allowed: json, csv, pdf.`)
  if (format === 'pdf' && output === undefined) throw usageError('A PDF needs --output FILE.')
  const client = await call.control()
  const id = await findTenantId(client, reference)
  const bytes = await readInvoice(client, id, invoice, format)
  if (output !== undefined) {
    await writeFile(call.path(output), bytes)
    if (call.output.isJson) call.output.one({ file: output, bytes: bytes.length })
    else call.output.progress(`Wrote ${bytes.length} bytes to ${output}.`)
  } else if (format === 'json') {
    const body = JSON.parse(bytes.toString('utf8')) as ResponseBody<'/v1/tenants/{id}/invoices/{invoice}', 'get'>
    call.output.one(body, () => formatInvoice(body))
  } else call.output.text(bytes)
}

async function readInvoice(
  client: ControlClient,
  id: string,
  invoice: string,
  format: keyof typeof mediaTypes,
): Promise<Buffer> {
  const options = { headers: { accept: mediaTypes[format] }, parseAs: 'arrayBuffer' } as const
  const { data } =
    invoice === 'upcoming'
      ? await client.GET('/v1/tenants/{id}/invoices/upcoming', { params: { path: { id } }, ...options })
      : await client.GET('/v1/tenants/{id}/invoices/{invoice}', { params: { path: { id, invoice } }, ...options })
  return Buffer.from(data ?? new ArrayBuffer())
}

function formatInvoice(body: ResponseBody<'/v1/tenants/{id}/invoices/{invoice}', 'get'>): string {
  const { tenant_id: tenant, month, state, number, currency, lines, net, taxes, total, payable } = body
  const described = Object.fromEntries(
    lines.map(({ description, amount }, at) => [`line ${at + 1}`, `${description}: ${amount} ${currency}`]),
  )
  return formatMembers({
    tenant,
    month,
    state,
    number,
    ...described,
    net,
    taxes,
    total,
    payable: `${payable} ${currency}`,
  })
}
