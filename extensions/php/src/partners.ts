/** The plugins that this one works with. */
import type { DatabaseContract } from '@portico/plugin-database/contract';
import { contract } from '@portico/sdk';

/** The partners of the definition. */
export const partners = { optional: { database: contract<DatabaseContract>() } };
