/** All kinds of servers. */
import { mysql } from '../mysql/index.ts';
import { postgresql } from '../postgresql/index.ts';
import type { Kind, KindName } from './kind.ts';

/** The kinds by their names. */
export const kinds: Readonly<Record<KindName, Kind>> = { mysql, postgresql };
