/** The errors that only this plugin has. */
import { defineErrors } from '@portico/sdk';

/** The plugin's own error table. */
export const fail = defineErrors({
    WOULD_LOCK_OUT: {
        code: 40950,
        message:
            'These rules would refuse your next connection to the panel; acceptLockOut tries them for two minutes at most'
    },
    PROTECTED: { code: 40951, message: '{address} is protected and is never banned: {why}' },
    TRIAL_PENDING: { code: 40952, message: 'A trial runs; confirm or revert it first' },
    NO_TRIAL: { code: 40953, message: 'There is no trial of this id; it may have been reverted' },
    NO_VERSION: { code: 40450, message: 'Version {version} is not kept' },
    NFT_REJECTED: { code: 42250, message: 'nft does not accept these rules: {message}' },
    NO_BOOT_FOLDER: { code: 42251, message: 'There is no folder {folder}; make it with mkdir {folder}' },
    LIST_FAILED: { code: 50250, message: 'The list could not be fetched: {why}' },
    NOT_PERMITTED: {
        code: 50350,
        message: 'The panel may not change the rules of the kernel; it needs the right CAP_NET_ADMIN'
    },
    NFT_UNUSABLE: { code: 50351, message: 'nft cannot be used: {why}' },
    NFT_TIMEOUT: { code: 50450, message: 'nft gave no answer within {seconds} s' },
    TOOL_FAILED: { code: 50251, message: '{tool} failed: {message}' }
});
