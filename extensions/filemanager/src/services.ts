/** Everything that the routes are made of, built once for each generation. */
import { Accounts } from './files/accounts.ts';
import { Writing } from './files/content.ts';
import { Entries } from './files/entries.ts';
import { Locks } from './locks.ts';
import { Roots } from './roots/roots.ts';
import { Scratch } from './roots/scratch.ts';
import type { Ctx } from './settings.ts';
import { Terminals } from './terminals.ts';
import { Trash } from './trash.ts';
import { Protocol } from './uploads/protocol.ts';
import { Uploads } from './uploads/uploads.ts';

export interface Parts {
    readonly ctx: Ctx;
    readonly roots: Roots;
    readonly entries: Entries;
    readonly scratch: Scratch;
    readonly locks: Locks;
    readonly writing: Writing;
    readonly trash: Trash;
    readonly uploads: Uploads;
    readonly protocol: Protocol;
    readonly terminals: Terminals;
}

export function createParts(ctx: Ctx): Parts {
    const roots = new Roots(ctx);
    const scratch = new Scratch(ctx, roots);
    const locks = new Locks();
    const uploads = new Uploads(ctx, roots, scratch);
    return {
        ctx,
        roots,
        scratch,
        locks,
        uploads,
        entries: new Entries(new Accounts(ctx)),
        writing: new Writing(scratch, locks),
        trash: new Trash(ctx, roots),
        protocol: new Protocol(ctx, roots, uploads),
        terminals: new Terminals(ctx)
    };
}
