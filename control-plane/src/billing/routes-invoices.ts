// Routes of a tenant's invoices: read as JSON, CSV or PDF, make, make void, and set the buyer (specification, section
// 4.4).
import { isTenantId } from '@tenantry/contract'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { InvoiceBody, InvoiceSummary, toInvoiceBody, toSummary, toUpcomingBody, UpcomingBody } from './invoice-body.ts'
import { invoiceCsv, invoicesCsv } from './invoice-csv.ts'
import { invoicePdf } from './invoice-pdf.ts'
import { invoiceNotFound, type Invoice } from './invoice.ts'
import { parseMonth, nextMonth } from '../platform/months.ts'
import { Party } from './price-list.ts'
import { ControlError } from '../platform/errors.ts'
import type { Api } from '../http/api.ts'
import type { WriteDeps } from '../http/idempotency.ts'
import type { Billing } from './billing.ts'
import type { PdfFonts } from './pdf-fonts.ts'
import { billedTenant, knownTenant, type InvoicedTenantDeps } from './invoiced-tenant.ts'
import { isUuid } from '../platform/uuid.ts'
import { PageQuery, pageRequest, writeContext, NoQuery } from '../http/parameters.ts'
import { formTypes, responseForm, type Form } from '../http/response-form.ts'

const allScopes = ['admin', 'read', 'billing'] as const
const billing = ['admin', 'billing'] as const
const Id = Type.Object({ id: Type.String() })
const InvoiceParams = Type.Object({
  id: Type.String(),
  invoice: Type.String({
    description: "The invoice's id, or its month as YYYY-MM; `.json`, `.csv` or `.pdf` may follow",
  }),
})
const Maybe = Type.Union([Type.String(), Type.Null()])
const closed = { additionalProperties: false }

/** The dependencies of the routes of invoices. */
export interface InvoiceRoutesDeps extends WriteDeps, InvoicedTenantDeps {
  billing: Billing
  /** Returns the fonts of PDFs. They are read when the first PDF is made. */
  pdfFonts(): Promise<PdfFonts>
}

/** Adds the routes of invoices, as JSON, CSV and PDF (specification, section 4.4). */
export function addInvoiceRoutes(app: Api, deps: InvoiceRoutesDeps): void {
  addReadInvoices(app, deps)
  addUpcoming(app, deps)
  addWriteInvoices(app, deps)
  addBuyer(app, deps)
}

function addReadInvoices(app: Api, deps: InvoiceRoutesDeps): void {
  const List = Type.Object({ invoices: Type.Array(InvoiceSummary), next_cursor: Maybe })
  for (const [path, extension] of [
    ['/v1/tenants/:id/invoices', undefined],
    ['/v1/tenants/:id/invoices.csv', 'csv'],
  ] as const) {
    app.get(
      path,
      {
        config: { scopes: allScopes },
        schema: {
          summary: "A tenant's invoices, oldest first; also when the tenant is gone",
          description: 'JSON, or CSV by `Accept: text/csv` or the extension.',
          tags: ['invoices'],
          params: Id,
          querystring: Type.Object(PageQuery, closed),
          response: {
            200: { content: { 'application/json': { schema: List }, 'text/csv': { schema: Type.String() } } },
          },
        },
      },
      async (request, reply) => {
        const form = responseForm(request, ['json', 'csv'], extension)
        const { items, nextCursor } = await page(deps, request.params.id, request.query)
        const summaries = items.map(toSummary)
        if (form === 'json') return setForm(reply, form).send({ invoices: summaries, next_cursor: nextCursor ?? null })
        if (nextCursor !== undefined) reply.header('link', `<?cursor=${nextCursor}>; rel="next"`)
        return setForm(reply, form).send(invoicesCsv(summaries))
      },
    )
  }

  app.get(
    '/v1/tenants/:id/invoices/:invoice',
    {
      config: { scopes: allScopes },
      schema: {
        summary: 'One invoice with its lines, as JSON, CSV or PDF',
        description: 'The extension or `Accept` selects the form. A month names its invoice that is not void.',
        tags: ['invoices'],
        params: InvoiceParams,
        querystring: NoQuery,
        response: {
          200: {
            content: {
              'application/json': { schema: InvoiceBody },
              'text/csv': { schema: Type.String() },
              'application/pdf': { schema: Type.Any() },
            },
          },
        },
      },
    },
    async (request, reply) => {
      const [, name = '', extension] = /^([^.]*)(?:\.(.*))?$/s.exec(request.params.invoice) ?? []
      const form = responseForm(request, ['json', 'csv', 'pdf'], extension)
      const body = toInvoiceBody(await foundInvoice(deps, request.params.id, name))
      if (form === 'json') return setForm(reply, form).send(body)
      reply.header(
        'content-disposition',
        `inline; filename="invoice-${(body.number ?? `draft-${body.month}`).replace(/[^\w-]/g, '-')}.${form}"`,
      )
      return setForm(reply, form).send(
        form === 'csv' ? invoiceCsv(body) : await invoicePdf(body, await deps.pdfFonts()),
      )
    },
  )
}

function addUpcoming(app: Api, deps: InvoiceRoutesDeps): void {
  const schema = {
    summary: "A preview of the current month's invoice",
    description:
      'Includes the hours that are closed so far, and the present plan until the end of the month. ' +
      'JSON, CSV or PDF, by the extension or by `Accept`. It is not an invoice and is not stored.',
    tags: ['invoices'],
    querystring: NoQuery,
    response: {
      200: {
        content: {
          'application/json': { schema: UpcomingBody },
          'text/csv': { schema: Type.String() },
          'application/pdf': { schema: Type.Any() },
        },
      },
    },
  }
  const sendUpcoming = async (request: FastifyRequest, reply: FastifyReply, id: string, extension?: string) => {
    const form = responseForm(request, ['json', 'csv', 'pdf'], extension)
    const body = toUpcomingBody(await deps.billing.upcoming(await billedTenant(deps, id), deps.now()))
    if (form === 'json') return setForm(reply, form).send(body)
    reply.header('content-disposition', `inline; filename="preview-${body.month}.${form}"`)
    return setForm(reply, form).send(form === 'csv' ? invoiceCsv(body) : await invoicePdf(body, await deps.pdfFonts()))
  }
  app.get(
    '/v1/tenants/:id/invoices/upcoming',
    { config: { scopes: allScopes }, schema: { ...schema, params: Id } },
    (request, reply) => sendUpcoming(request, reply, request.params.id),
  )
  const WithExtension = Type.Object({
    id: Type.String(),
    extension: Type.String({ description: '`json`, `csv` or `pdf`' }),
  })
  app.get(
    '/v1/tenants/:id/invoices/upcoming.:extension',
    { config: { scopes: allScopes }, schema: { ...schema, params: WithExtension } },
    (request, reply) => sendUpcoming(request, reply, request.params.id, request.params.extension),
  )
}

function addWriteInvoices(app: Api, deps: InvoiceRoutesDeps): void {
  app.post(
    '/v1/tenants/:id/invoices/close',
    {
      config: { scopes: billing },
      schema: {
        summary: "Make a month's invoice",
        description:
          'For a month whose hours are all closed. An invoice that is final already is returned as it is. ' +
          'With `final: false` a draft, which may be made again.',
        tags: ['invoices'],
        params: Id,
        querystring: NoQuery,
        body: Type.Object(
          {
            month: Type.String({ description: 'YYYY-MM' }),
            final: Type.Optional(Type.Boolean({ description: 'true by default' })),
          },
          closed,
        ),
        response: { 200: InvoiceBody },
      },
    },
    async (request) => {
      const month = begunMonth(deps, request.body.month)
      const tenantId = await billedTenant(deps, request.params.id, month, nextMonth(month))
      if (nextMonth(month) > deps.now())
        throw new ControlError('MONTH_NOT_CLOSED', `Month ${request.body.month} is not over.`)
      const existing = await deps.invoices.ofMonth(tenantId, month)
      if (existing?.state === 'final') return toInvoiceBody(existing)
      const { actor } = writeContext(request)
      for (let attempt = 0; attempt < 10; attempt++) {
        const content = await deps.billing.compose(tenantId, month)
        const stored = await deps.record(actor, (write) =>
          deps.invoices.save(content, request.body.final ?? true, write),
        )
        if (stored !== undefined) return toInvoiceBody(stored)
      }
      throw new ControlError('UNAVAILABLE', "The tenant's adjustments changed while its invoice was made. Try again.")
    },
  )

  app.post(
    '/v1/tenants/:id/invoices/:invoice/void',
    {
      config: { scopes: billing },
      schema: {
        summary: 'Make a final invoice void',
        description: 'The invoice stays, with its number. Another one may then be made for its month.',
        tags: ['invoices'],
        params: Type.Object({ id: Type.String(), invoice: Type.String({ description: "The invoice's id" }) }),
        querystring: NoQuery,
        body: Type.Object({ reason: Party.properties.name }, closed),
        response: { 200: InvoiceBody },
      },
    },
    async (request) => {
      const { id, invoice } = request.params
      if (!isTenantId(id) || !isUuid(invoice)) throw invoiceNotFound()
      const { actor } = writeContext(request)
      const { reason } = request.body
      return toInvoiceBody(await deps.record(actor, (write) => deps.invoices.makeVoid(id, invoice, reason, write)))
    },
  )
}

function addBuyer(app: Api, deps: InvoiceRoutesDeps): void {
  app.get(
    '/v1/tenants/:id/buyer',
    {
      config: { scopes: allScopes },
      schema: {
        summary: 'The party that is invoiced for a tenant',
        tags: ['invoices'],
        params: Id,
        querystring: NoQuery,
        response: { 200: Party },
      },
    },
    async (request) => deps.billing.buyerOf(await knownTenant(deps, request.params.id)),
  )

  app.put(
    '/v1/tenants/:id/buyer',
    {
      config: { scopes: billing },
      schema: {
        summary: 'Set who is invoiced for a tenant',
        description: 'Applies to the invoices that are made from now on.',
        tags: ['invoices'],
        params: Id,
        querystring: NoQuery,
        body: Party,
        response: { 200: Party },
      },
    },
    async (request) => {
      const tenantId = await knownTenant(deps, request.params.id)
      const { actor } = writeContext(request)
      return deps.record(actor, (write) => deps.invoices.putBuyer(tenantId, request.body, write))
    },
  )
}

/** Sets the headers of a response whose form depends on the caller's `Accept`. */
function setForm(reply: FastifyReply, form: Form): FastifyReply {
  return reply.header('vary', 'accept').type(form === 'pdf' ? formTypes.pdf : `${formTypes[form]}; charset=utf-8`)
}

async function page(deps: InvoiceRoutesDeps, id: string, query: { limit?: string; cursor?: string }) {
  const found = isTenantId(id) ? await deps.invoices.list(id, pageRequest(query)) : { items: [], nextCursor: undefined }
  if (found.items.length === 0) await knownTenant(deps, id)
  return found
}

async function foundInvoice(deps: InvoiceRoutesDeps, tenantId: string, name: string): Promise<Invoice> {
  const month = parseMonth(name)
  const found = !isTenantId(tenantId)
    ? undefined
    : month !== undefined
      ? await deps.invoices.ofMonth(tenantId, month)
      : isUuid(name)
        ? await deps.invoices.get(tenantId, name)
        : undefined
  if (found === undefined) throw invoiceNotFound()
  return found
}

function begunMonth(deps: InvoiceRoutesDeps, text: string): Date {
  const month = parseMonth(text)
  if (month === undefined) throw new ControlError('INVALID_MONTH', `Invalid month "${text}". It must be YYYY-MM.`)
  if (month > deps.now()) throw new ControlError('FUTURE_MONTH', `Month ${text} has not begun.`)
  return month
}
