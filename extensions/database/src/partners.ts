/** The plugins that this one works with. */
import type { ContainerContract } from '@portico/plugin-container/contract';
import { contract } from '@portico/sdk';

/** The partners of the definition. */
export const partners = { optional: { container: contract<ContainerContract>() } };
