/** The services of one generation of the plugin. */
import { KeyedMutex } from '@portico/sdk';

import { Accounts } from './files/accounts.ts';
import { FileWriter } from './files/content.ts';
import { Entries } from './files/entries.ts';
import { Roots } from './roots/roots.ts';
import { Scratch } from './roots/scratch.ts';
import type { Ctx } from './settings.ts';
import { Terminals } from './terminals.ts';
import { Trash } from './trash.ts';
import { TusProtocol } from './uploads/protocol.ts';
import { Uploads } from './uploads/uploads.ts';

/** What the routes ask. */
export interface Services {
    readonly roots: Roots;
    readonly entries: Entries;
    readonly scratch: Scratch;
    readonly writer: FileWriter;
    readonly trash: Trash;
    readonly uploads: Uploads;
    readonly protocol: TusProtocol;
    readonly terminals: Terminals;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx): Services {
    const roots = new Roots(ctx);
    const scratch = new Scratch(ctx, roots);
    const uploads = new Uploads(ctx, roots, scratch);
    return {
        roots,
        scratch,
        uploads,
        entries: new Entries(new Accounts(ctx)),
        writer: new FileWriter(scratch, new KeyedMutex()),
        trash: new Trash(ctx, roots),
        protocol: new TusProtocol(ctx, roots, uploads),
        terminals: new Terminals(ctx)
    };
}
