// Routes of a tenant's spending limit: read, set and remove.
import { Type, type Static } from 'typebox'
import type { Billing } from '../billing/index.ts'
import type { Api } from '../http/api.ts'
import type { WriteDeps } from '../http/idempotency.ts'
import { NoQuery, writeContext } from '../http/parameters.ts'
import { ControlError } from '../platform/errors.ts'
import { monthText, startOfMonth } from '../platform/months.ts'
import { foundTenant, type TenantStore } from '../tenants/index.ts'
import { amountText, checkSpending, percentOf, readAmount, spendingActions } from './spending-limit.ts'
import { limitNotFound, type SpendingStore, type StoredLimit } from './store.ts'

const Maybe = (description: string) => Type.Union([Type.String(), Type.Null()], { description })
const LimitBody = Type.Object({
  tenant_id: Type.String(),
  amount: Type.String({ description: "The limit of a month, tax included, with the currency's decimal places" }),
  currency: Type.String(),
  action: Type.Enum([...spendingActions], {
    description: "At 100 %: `reject` the tenant's requests at the gateways, or only `notify` operators",
  }),
  month: Type.String({ description: 'The current month, YYYY-MM' }),
  upcoming: Maybe('The total of the upcoming invoice at the last check of this month'),
  percent: Type.Union([Type.Integer(), Type.Null()], { description: 'of the limit, rounded down' }),
  rejects_until: Maybe("The time until which the tenant's requests are rejected; null if they are not"),
  checked_at: Maybe('The last check of this month'),
})
const Id = Type.Object({ id: Type.String() })
const tags = ['invoices']

/** The dependencies of the routes of spending limits. */
export interface SpendingRoutesDeps extends WriteDeps {
  tenants: Pick<TenantStore, 'get'>
  spending: SpendingStore
  billing: Billing
  /** Returns the current time. */
  now: () => Date
}

/** Adds the routes of spending limits. */
export function addSpendingRoutes(app: Api, deps: SpendingRoutesDeps): void {
  const path = '/v1/tenants/:id/spending-limit'
  const { spending, now } = deps

  app.get(
    path,
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: {
        summary: "A tenant's spending limit, with its last check",
        tags,
        params: Id,
        querystring: NoQuery,
        response: { 200: LimitBody },
      },
    },
    async (request) => {
      const { id } = await foundTenant(deps, request.params.id)
      const limit = await spending.get(id)
      if (limit === undefined) throw limitNotFound()
      return toBody(limit, now())
    },
  )

  app.put(
    path,
    {
      config: { scopes: ['admin', 'billing'] },
      schema: {
        summary: 'Set what a tenant may spend in a month',
        description:
          'The limit is compared with the total of the upcoming invoice, at once and then each minute. ' +
          'Operators are notified at 80 % and 100 %.',
        tags,
        params: Id,
        querystring: NoQuery,
        body: Type.Object(
          {
            amount: Type.String({ description: "A decimal number with at most the currency's decimal places" }),
            action: Type.Optional(Type.Enum([...spendingActions], { description: '`reject` by default' })),
          },
          { additionalProperties: false },
        ),
        response: { 200: LimitBody },
      },
    },
    async (request) => {
      const { actor } = writeContext(request)
      const { amount, action = 'reject' } = request.body
      const { id: tenantId } = await foundTenant(deps, request.params.id)
      const { config } = deps.billing
      if (config === undefined)
        throw new ControlError(
          'BILLING_OFF',
          'A spending limit requires prices, which this installation does not have (TENANTRY_PRICES_FILE).',
        )
      const { currency } = config
      const limit = { tenantId, amountMicro: readAmount(amount, currency), currency, action }
      const at = now()
      const total = (await deps.billing.upcomingTotals([tenantId], at)).get(tenantId)
      if (total === undefined || !('totalMicro' in total))
        throw new Error('The upcoming invoice could not be computed.', { cause: total?.error })
      const check = checkSpending(limit, total.totalMicro, startOfMonth(at), at)
      return toBody(await deps.record(actor, (write) => spending.put(limit, check, write)), at)
    },
  )

  app.delete(
    path,
    {
      config: { scopes: ['admin', 'billing'] },
      schema: {
        summary: "Remove a tenant's spending limit",
        tags,
        params: Id,
        querystring: NoQuery,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const { actor } = writeContext(request)
      const { id } = await foundTenant(deps, request.params.id)
      await deps.record(actor, (write) => spending.remove(id, write))
      return reply.status(204).send(null)
    },
  )
}

function toBody({ tenantId, amountMicro, currency, action, last }: StoredLimit, at: Date): Static<typeof LimitBody> {
  const month = startOfMonth(at)
  const current = last?.month.getTime() === month.getTime() ? last : undefined
  const isRejecting = current?.rejectsUntil !== undefined && current.rejectsUntil > at
  return {
    tenant_id: tenantId,
    amount: amountText(amountMicro, currency),
    currency,
    action,
    month: monthText(month),
    upcoming: current === undefined ? null : amountText(current.totalMicro, currency),
    percent: current === undefined ? null : percentOf(current.totalMicro, amountMicro),
    rejects_until: isRejecting ? (current.rejectsUntil?.toISOString() ?? null) : null,
    checked_at: current?.checkedAt.toISOString() ?? null,
  }
}
