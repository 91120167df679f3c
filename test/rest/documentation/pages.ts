// All recorded pages of PostgREST's documentation.
import { aggregates } from './aggregates.ts'
import { dataTypes } from './data-types.ts'
import { embeddingFilters } from './embedding-filters.ts'
import { embeddingRelations } from './embedding-relations.ts'
import { functions } from './functions.ts'
import { guides } from './guides.ts'
import { mediaTypes } from './media-types.ts'
import type { Page } from './page.ts'
import { preferences } from './preferences.ts'
import { representations } from './representations.ts'
import { requestsAndResponses } from './requests-and-responses.ts'
import { tablesAndViewsReading } from './tables-views-reading.ts'
import { tablesAndViewsWriting } from './tables-views-writing.ts'
import { transactionsAndErrors } from './transactions-and-errors.ts'

export const pages: readonly Page[] = [
  tablesAndViewsReading,
  tablesAndViewsWriting,
  embeddingRelations,
  embeddingFilters,
  functions,
  aggregates,
  preferences,
  ...representations,
  ...mediaTypes,
  ...requestsAndResponses,
  ...transactionsAndErrors,
  ...dataTypes,
  ...guides,
]
