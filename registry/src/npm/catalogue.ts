/** What the registry offers: versions of installed packages, and other packages with the keyword of plugins. */
import gt from 'semver/functions/gt.js';

import { InstallFailure } from '../failure.ts';
import type { Offer } from '../ports.ts';
import { choose } from '../resolve/choose.ts';
import { createClient } from './client.ts';
import type { CatalogueJob, CatalogueResult } from './job.ts';

const keyword = 'portico-plugin';
const most = 250;
const atOnce = 6;

/** Asks the registry for each installed package and for packages with the keyword. */
export async function catalogue(job: CatalogueJob): Promise<CatalogueResult> {
    const client = createClient(job, '', { bytes: 0 });
    const installed = new Map(job.installed.map((each) => [each.package, each.version]));
    const found = await client.search(keyword, job.search);
    const names = [...new Set([...installed.keys(), ...(found ?? [])])].slice(0, most);
    const offers: Offer[] = [];
    const failures: { package: string; message: string }[] = [];
    const queue = names.values();
    const reserved = new Set(job.reserved);
    const ask = async (name: string): Promise<void> => {
        try {
            const listing = await client.listing(name);
            const choice = choose(listing, null, job.host, reserved);
            const newest = listing.versions[choice.newest ?? ''];
            const current = installed.get(name) ?? null;
            // A registry that does not know keywords searches by words, so its answer may name other packages.
            if (choice.newest !== null && (current !== null || hasKeyword(newest))) {
                offers.push({
                    package: name,
                    name: choice.plugin?.manifest.name ?? nameOf(newest),
                    title: choice.plugin?.title ?? titleOf(newest, name),
                    version: choice.plugin?.version ?? null,
                    latest: choice.newest,
                    conflict: choice.conflict,
                    installed: current,
                    upgrade: current !== null && choice.plugin !== null && gt(choice.plugin.version, current)
                });
            }
        } catch (error) {
            failures.push({
                package: name,
                message: error instanceof InstallFailure ? error.message : String(error)
            });
        }
    };
    await Promise.all(
        Array.from({ length: atOnce }, async () => {
            for (const name of queue) {
                await ask(name);
            }
        })
    );
    const byName = <T extends { readonly package: string }>(one: T, two: T): number =>
        one.package < two.package ? -1 : 1;
    return { offers: offers.sort(byName), searchable: found !== null, failures: failures.sort(byName) };
}

function hasKeyword(packageJson: unknown): boolean {
    const { keywords } = (packageJson ?? {}) as { keywords?: unknown };
    return Array.isArray(keywords) && keywords.includes(keyword);
}

function nameOf(packageJson: unknown): string | null {
    const { portico } = (packageJson ?? {}) as { portico?: { name?: unknown } };
    return typeof portico?.name === 'string' ? portico.name : null;
}

function titleOf(packageJson: unknown, name: string): string {
    const { description } = (packageJson ?? {}) as { description?: unknown };
    return typeof description === 'string' && description !== '' ? description.slice(0, 80) : name;
}
