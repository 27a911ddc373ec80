/** Finds a user of the running panel by name. */
import type { UserView } from '../../features/users/users.ts';
import { CommandError } from '../command/command-error.ts';
import type { Client, Reply } from './client.ts';

const longestName = 64;

/** Finds a user by the whole name; the API searches for parts of it and answers in pages. @throws CommandError when there is none */
export async function findUser(client: Client, username: string): Promise<UserView> {
    const key = username.toLowerCase();
    for (let cursor: string | null = ''; cursor !== null && username.length <= longestName;) {
        const page: Reply<readonly UserView[]> = await client.call(
            'GET',
            `/api/users?limit=500&q=${encodeURIComponent(username)}${cursor === '' ? '' : `&cursor=${cursor}`}`
        );
        const user = page.data.find((each) => each.username.toLowerCase() === key);
        if (user !== undefined) {
            return user;
        }
        cursor = page.next;
    }
    throw new CommandError(`There is no user ${username}`);
}
