// A tenant's database that counts the statements sent to it.
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import type { Result, ScopedStatements } from '#tenant-runtime/database/statement.ts'

/** Counts the statements that reach the database, without the context's own statement, and collects their texts. */
export class CountingDatabase extends ScopedDatabase {
  statements = 0
  readonly texts = new Set<string>()

  override runTogether(
    parts: readonly ScopedStatements[],
    options?: Parameters<ScopedDatabase['runTogether']>[1],
  ): Promise<Result[]> {
    this.statements += parts.reduce((sum, { statements }) => sum + statements.length, 0)
    for (const { statements } of parts) for (const { text } of statements) this.texts.add(text)
    return super.runTogether(parts, options)
  }

  override stream: ScopedDatabase['stream'] = (context, before, last, frame, signal) => {
    this.statements += before.length + 1
    for (const { text } of [...before, last]) this.texts.add(text)
    return super.stream(context, before, last, frame, signal)
  }

  override withOwner: ScopedDatabase['withOwner'] = (work) => {
    this.statements++
    return super.withOwner(work)
  }
}
