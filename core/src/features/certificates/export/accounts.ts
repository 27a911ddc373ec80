/** The panel's accounts at CAs in a document of the whole panel: nothing but secrets, and one of them. */
import { createPrivateKey } from 'node:crypto';

import { joi, type Value } from '@portico/sdk';

import type { Reading } from '../../../engine/section.ts';
import { faultsOf } from '../../../platform/validation.ts';
import type { AcmeAccounts, MovedAccount } from '../acme/accounts.ts';

/** The path of the one secret that all of them are. */
const secret = 'accounts';

const address = () =>
    joi
        .string()
        .uri({ scheme: ['https', 'http'] })
        .max(2048);
const shape = joi
    .array()
    .items(
        joi.object({
            directory: address().required(),
            email: joi.string().max(254).allow(null).required(),
            eabKeyId: joi.string().max(512).allow(null).required(),
            key: joi.string().max(4096).required(),
            url: address().allow(null).required(),
            createdAt: joi.string().isoDate().required()
        })
    )
    .max(10_000);

/** Puts them into a document, if there are any. */
export function putAccounts(
    sink: { put(path: string, secret: string): void } | null,
    accounts: Pick<AcmeAccounts, 'list' | 'open'>
): void {
    const list = sink === null ? [] : accounts.list();
    if (list.length > 0) {
        sink?.put(
            secret,
            JSON.stringify(list.map((account) => accounts.open(account)) satisfies Value<typeof shape>)
        );
    }
}

/** Those of a document; none where it has no secrets. What is wrong goes to the faults. */
export function readAccounts({ secrets, path, faults }: Reading): readonly MovedAccount[] {
    const sealed = secrets?.json(secret);
    if (sealed === undefined) {
        return [];
    }
    if (faultsOf(shape, sealed).length > 0) {
        faults.add(`${path}.${secret}`, 'its accounts at CAs are damaged');
        return [];
    }
    return (sealed as Value<typeof shape>).flatMap((account, at): readonly MovedAccount[] => {
        const key = accountKey(account.key);
        if (key === null) {
            faults.add(
                `${path}.${secret}.${at}.key`,
                `its key of the account at ${account.directory} is damaged`
            );
        }
        return key === null ? [] : [{ ...account, key }];
    });
}

/** As the panel makes them, or null. */
function accountKey(pem: string): string | null {
    try {
        const key = createPrivateKey(pem);
        return key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1'
            ? (key.export({ type: 'pkcs8', format: 'pem' }) as string)
            : null;
    } catch {
        return null;
    }
}
