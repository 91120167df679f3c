// The Postgres adapter of Prisma, whose transactions send one query at a time.
import { PrismaPg } from '@prisma/adapter-pg'

type Adapter = Awaited<ReturnType<PrismaPg['connect']>>
type Transaction = Awaited<ReturnType<Adapter['startTransaction']>>

/**
 * Prisma reads the relations of an `include` at once, in a transaction on the transaction's only connection. node-postgres queues
 * such queries, warns of them and will reject them; here each waits for the one before it.
 */
export class SequentialPrismaPg extends PrismaPg {
  /** Connects as Prisma's adapter does; a transaction sends one query at a time. */
  override async connect(): Promise<Adapter> {
    const adapter = await super.connect()
    const startTransaction = adapter.startTransaction.bind(adapter)
    adapter.startTransaction = async (isolationLevel) => oneAtATime(await startTransaction(isolationLevel))
    return adapter
  }
}

/** Changes the transaction itself, which its own methods call too. A query that fails does not hold up the next one. */
function oneAtATime(transaction: Transaction): Transaction {
  let last: Promise<unknown> = Promise.resolve()
  const inTurn =
    <In, Out>(send: (query: In) => Promise<Out>) =>
    (query: In): Promise<Out> => {
      const response = last.then(() => send(query))
      last = response.catch(() => undefined)
      return response
    }
  transaction.queryRaw = inTurn(transaction.queryRaw.bind(transaction))
  transaction.executeRaw = inTurn(transaction.executeRaw.bind(transaction))
  return transaction
}
