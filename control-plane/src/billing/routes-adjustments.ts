// Routes of a tenant's credits and one-time charges: create, list, and delete while no final invoice has them.
import { Type, type Static } from 'typebox'
import { parseAdjustment, type Adjustment } from './adjustment.ts'
import { invoiceStates } from './invoice-state.ts'
import { decimalText } from './money.ts'
import { monthText } from '../platform/months.ts'
import { Party } from './price-list.ts'
import { ControlError } from '../platform/errors.ts'
import type { Api } from '../http/api.ts'
import type { AdjustmentStore } from './store-adjustments.ts'
import type { Billing } from './billing.ts'
import { respondOnce, type ResponseDeps } from '../http/idempotency.ts'
import { billedTenant, type InvoicedTenantDeps } from './invoiced-tenant.ts'
import { isUuid } from '../platform/uuid.ts'
import { PageQuery, pageRequest, writeContext, NoQuery } from '../http/parameters.ts'

const billing = ['admin', 'billing'] as const
const Id = Type.Object({ id: Type.String() })
const Maybe = Type.Union([Type.String(), Type.Null()])
const closed = { additionalProperties: false }

const AdjustmentBody = Type.Object({
  adjustment_id: Type.String(),
  description: Type.String(),
  amount: Type.String({ description: 'Net, six decimal places; a credit is negative' }),
  currency: Type.String(),
  created_at: Type.String({ description: 'ISO 8601, UTC' }),
  invoice: Type.Union(
    [
      Type.Object({
        invoice_id: Type.String(),
        number: Maybe,
        month: Type.String(),
        state: Type.Enum([...invoiceStates]),
      }),
      Type.Null(),
    ],
    {
      description: 'The draft or final invoice that the adjustment is on',
    },
  ),
})

/** The dependencies of the routes of adjustments. */
export interface AdjustmentRoutesDeps extends ResponseDeps, InvoicedTenantDeps {
  adjustments: AdjustmentStore
  billing: Billing
}

/** Adds the routes of adjustments: credits and one-time charges that an operator gives a tenant. */
export function addAdjustmentRoutes(app: Api, deps: AdjustmentRoutesDeps): void {
  app.get(
    '/v1/tenants/:id/adjustments',
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: {
        summary: "A tenant's credits and one-time charges, oldest first",
        tags: ['invoices'],
        params: Id,
        querystring: Type.Object(PageQuery, closed),
        response: { 200: Type.Object({ adjustments: Type.Array(AdjustmentBody), next_cursor: Maybe }) },
      },
    },
    async (request) => {
      const tenantId = await billedTenant(deps, request.params.id)
      const { items, nextCursor } = await deps.adjustments.list(tenantId, pageRequest(request.query))
      return { adjustments: items.map(toBody), next_cursor: nextCursor ?? null }
    },
  )

  app.post(
    '/v1/tenants/:id/adjustments',
    {
      config: { scopes: billing },
      schema: {
        summary: 'Give a tenant a credit or a one-time charge',
        description: "Becomes a line of the tenant's next invoice, taxed as its other lines.",
        tags: ['invoices'],
        params: Id,
        querystring: NoQuery,
        body: Type.Object(
          {
            description: Party.properties.name,
            amount: Type.String({
              description:
                'Net: a decimal number of at most nine digits and six decimal places, not 0; `-` before it makes it a credit',
            }),
          },
          closed,
        ),
        response: { 201: AdjustmentBody },
      },
    },
    async (request, reply) => {
      const context = writeContext(request)
      reply.code(201)
      return respondOnce(deps, context, reply, async (record) => {
        const { description, amount: text } = request.body
        const amount = parseAdjustment(text)
        if (amount === undefined)
          throw new ControlError(
            'INVALID_FIELD',
            `Invalid amount "${text}". It must be a decimal number other than 0 with at most nine digits and six decimal places.`,
          )
        const tenantId = await billedTenant(deps, request.params.id)
        if (deps.billing.config === undefined)
          throw new ControlError(
            'BILLING_OFF',
            'Billing is off: this installation has no prices (TENANTRY_PRICES_FILE).',
          )
        const given = { tenantId, description, amount, currency: deps.billing.config.currency }
        return toBody(await record((write) => deps.adjustments.create(given, write), toBody))
      })
    },
  )

  app.delete(
    '/v1/tenants/:id/adjustments/:adjustment',
    {
      config: { scopes: billing },
      schema: {
        summary: 'Delete a credit or charge that is on no final invoice',
        tags: ['invoices'],
        params: Type.Object({ id: Type.String(), adjustment: Type.String() }),
        querystring: NoQuery,
        response: { 200: AdjustmentBody },
      },
    },
    async (request) => {
      const tenantId = await billedTenant(deps, request.params.id)
      const { adjustment } = request.params
      if (!isUuid(adjustment)) throw new ControlError('ADJUSTMENT_NOT_FOUND', 'There is no such adjustment.')
      const { actor } = writeContext(request)
      return toBody(await deps.record(actor, (write) => deps.adjustments.remove(tenantId, adjustment, write)))
    },
  )
}

function toBody({ id, description, amount, currency, createdAt, invoice }: Adjustment): Static<typeof AdjustmentBody> {
  return {
    adjustment_id: id,
    description,
    amount: decimalText(amount),
    currency,
    created_at: createdAt.toISOString(),
    invoice:
      invoice === undefined
        ? null
        : {
            invoice_id: invoice.id,
            number: invoice.number ?? null,
            month: monthText(invoice.month),
            state: invoice.state,
          },
  }
}
