/** The services of one generation of the plugin. */
import { KeyedMutex } from '@portico/sdk';

import { Converter } from './archives/converter.ts';
import { Batch } from './batch/batch.ts';
import { Favourites } from './favourites.ts';
import { Fetching } from './fetching/fetching.ts';
import { Accounts } from './files/attributes/accounts.ts';
import { Entries } from './files/entries.ts';
import { FileWriter } from './files/writer.ts';
import { Mover } from './moving/mover.ts';
import { Quotas } from './roots/quotas.ts';
import { Roots } from './roots/roots.ts';
import { Scratch } from './roots/scratch.ts';
import type { Ctx } from './settings.ts';
import { Shares } from './shares.ts';
import { Recordings } from './terminals/recordings.ts';
import { Terminals } from './terminals/terminals.ts';
import { Removal } from './trash/removal.ts';
import { Trash } from './trash/trash.ts';
import { TusProtocol } from './uploads/protocol.ts';
import { Uploads } from './uploads/uploads.ts';
import { Versions } from './versions/versions.ts';

/** What the routes ask. */
export interface Services {
    readonly roots: Roots;
    readonly quotas: Quotas;
    readonly versions: Versions;
    readonly mover: Mover;
    readonly entries: Entries;
    readonly scratch: Scratch;
    readonly writer: FileWriter;
    readonly trash: Trash;
    readonly removal: Removal;
    readonly batch: Batch;
    readonly converter: Converter;
    readonly accounts: Accounts;
    readonly uploads: Uploads;
    readonly protocol: TusProtocol;
    readonly fetching: Fetching;
    readonly favourites: Favourites;
    readonly shares: Shares;
    readonly terminals: Terminals;
    readonly recordings: Recordings;
}

/** Makes the services and connects them. */
export function createServices(ctx: Ctx): Services {
    const roots = new Roots(ctx);
    const accounts = new Accounts(ctx);
    const quotas = new Quotas(ctx);
    const versions = new Versions(ctx, roots, quotas);
    const scratch = new Scratch(ctx, roots);
    const parts = { scratch, mutex: new KeyedMutex(), quotas, versions };
    const uploads = new Uploads(ctx, roots, parts);
    const trash = new Trash(ctx, roots, { quotas, versions });
    const recordings = new Recordings(ctx);
    const removal = new Removal(parts);
    const writer = new FileWriter(parts);
    const mover = new Mover({ ...parts, trash });
    return {
        roots,
        quotas,
        versions,
        scratch,
        uploads,
        trash,
        accounts,
        removal,
        mover,
        converter: new Converter(ctx),
        batch: new Batch(ctx, { roots, scratch, mover, trash, removal }),
        entries: new Entries(accounts),
        writer,
        fetching: new Fetching(ctx, writer),
        protocol: new TusProtocol(ctx, roots, uploads),
        favourites: new Favourites(ctx, roots),
        shares: new Shares(ctx, roots),
        recordings,
        terminals: new Terminals(ctx, recordings)
    };
}
