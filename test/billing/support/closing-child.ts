// Runs the leader's check for missing invoices once in its own process, which a test may kill: closing-child.ts URL NOW
import { createClosing } from '#control-plane/billing/jobs.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openBilling } from '#control-plane/billing/billing-stores.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { billingConfig } from './prices.ts'

const [url = '', at = ''] = process.argv.slice(2)
const now = () => new Date(at)
const database = openDatabase(url)
const log = {
  info: () => undefined,
  warn: (details: object) => {
    throw new Error('an invoice could not be made', { cause: details })
  },
}
const { poll } = createClosing(
  {
    ...openBilling(database, billingConfig, now),
    config: billingConfig,
    clock: { ...systemClock, now },
    measure: () => undefined,
    log,
  },
  0n,
)
await poll(new AbortController().signal)
await database.$disconnect()
