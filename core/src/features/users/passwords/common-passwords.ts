/**
 * The words of most guessed passwords. Lists of leaked passwords are mostly these words with a capital, digits or a sign at the end. So only
 * the words are listed, and `password-policy.ts` removes such additions before it compares.
 */
const words = `
password passwort passwd passphrase pass pwd mypassword thepassword newpassword oldpassword passwordpassword secret topsecret secretpassword letmein
letmeinplease letmeinnow openup opensesame open sesame access accessdenied accessgranted welcome welcomehome welcomeback welcometo hello helloworld
hellohello hellokitty hithere whatever whateverman nothing something anything everything admin administrator administrador adminadmin adminpassword
adminpass superadmin superuser sysadmin system systemadmin manager management operator supervisor root rootroot toor rootpassword rootpass user
username useruser userpassword guest guestguest guestaccess visitor test testtest testing testpassword tester testuser demo demodemo demouser sample
example default defaultpassword change changeme changemenow changeit changethis changepassword pleasechange pleasechangeme replaceme temporary temp temppassword
temppass tempuser initial initialpassword master masterkey mastermaster masterpassword login loginlogin loginpassword logmein signin service
serviceaccount server serverserver serverpassword servername localhost database databasepassword mysql postgres postgresql oracle mongodb redis
webmaster website internet intranet network router firewall gateway proxy reverseproxy caddy nginx apache linux ubuntu debian centos fedora windows
microsoft apple macintosh google android samsung iphone computer laptop desktop keyboard monitor printer hardware software developer developers
development production staging backup security secure securepassword private public company business office support helpdesk account accounts
iloveyou iloveyousomuch iloveu ilovegod ilovejesus ilovemymom ilovemyself loveyou lovelove loveme loverboy lovergirl lover lovely sweetheart sweety
sweetie darling honey honeybunny babygirl babyboy babydoll baby princess prince queen king kingkong angel angels angelina heaven jesus jesuschrist
christ christian godisgood godbless blessed church heavenly trustno trustnoone trustme trust nopassword noaccess idontknow dontknow forgot forgotten
forgetit remember rememberme dragon dragons dragonball monkey monkeys donkey tiger tigers lion lions elephant butterfly butterflies dolphin dolphins
turtle rabbit chicken kitten kitty puppy doggie panther cheetah eagle eagles falcon falcons phoenix unicorn rainbow sunshine sunflower sunrise sunset
moonlight starlight midnight flower flowers blossom strawberry blueberry raspberry cherry banana orange pineapple chocolate cookie cookies cupcake
brownie cheese cheeseburger hamburger pizza coffee peanut butter football footballer soccer baseball basketball basketballer volleyball hockey tennis
golfer cricket rugby boxing wrestling racing liverpool manchester manchesterunited arsenal chelsea barcelona realmadrid juventus bayern dortmund
cowboys steelers yankees redsox lakers patriots packers raiders broncos giants superman batman spiderman ironman wonderwoman wolverine captain
captainamerica starwars startrek skywalker lukeskywalker darthvader jedimaster gandalf hobbit harrypotter hogwarts hermione pokemon pikachu minecraft
fortnite roblox nintendo playstation xbox gamer gaming letsplay counterstrike callofduty warcraft worldofwarcraft starcraft diablo zelda mario luigi
sonic matrix terminator predator ninja samurai pirate hunter killer assassin soldier warrior general sergeant shadow ghost vampire zombie monster
demon devil satan lucifer metallica nirvana slipknot eminem beatles elvis madonna rockstar rocknroll music musica musician guitar guitarist drummer
piano forever foreveryoung alwaysandforever together friends friend bestfriend bestfriends bestfriendsforever family myfamily mother father mommy
daddy mamapapa brother sister grandma grandpa january february march april june july august september october november december
monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter summertime wintertime christmas birthday happybirthday holiday
halloween easter newyear happynewyear happy happiness smile smiley freedom liberty peace hope destiny dream dreams dreamer believe success successful
lucky luckyday winner champion champions america american england london paris france germany deutschland berlin hamburg muenchen austria vienna
switzerland zurich italia italy roma spain espana madrid portugal lisbon brasil brazil mexico argentina canada toronto australia sydney melbourne
russia moscow china beijing shanghai japan tokyo india mumbai delhi turkey istanbul california texas newyork newyorkcity chicago losangeles boston
michael michelle jennifer jessica ashley amanda samantha elizabeth stephanie nicole daniel daniela david davidson robert roberto william williams
andrew anthony matthew joshua christopher christina christine thomas thomason richard charles charlie alexander alexandra alexandria alejandro
alejandra benjamin nicholas nathaniel jonathan johnson johnny jordan michaeljordan patrick patricia natalie natasha victoria vanessa veronica
sebastian fernando fernanda francisco gabriel gabriela gonzalez rodriguez martinez hernandez garcia lopez perez maria mariajose carlos miguel
andreas stefan stefanie wolfgang mustafa mohammed muhammad ibrahim abdullah fatima
correcthorsebatterystaple correcthorse batterystaple ihateyou fuckyou fuckyouall fuckoff fuckme motherfucker asshole bullshit bitch sexy sexybitch
sexygirl sexyboy hottie buster ginger maggie buddy bailey jasmine harley hannah mustang corvette ferrari porsche mercedes chevrolet toyota
yamaha suzuki kawasaki harleydavidson motorcycle portico porticopanel portainer panel controlpanel dashboard webpanel hosting webhosting
querty qwerty qwertyuiop qwertz qwertzuiop azerty azertyuiop asdf asdfgh asdfghjkl zxcvbn zxcvbnm yxcvbnm qazwsx qazwsxedc qazwsxedcrfv
abcabc abcdabcd abcdef abcdefg abcdefgh aaaa zzzz xxxx qweasd qweasdzxc asdqwe asdasd asdfasdf qweqwe qwerqwer zxczxc poiuytrewq lkjhgfdsa mnbvcxz
`;

/** The words, in lower case. */
export const commonWords: ReadonlySet<string> = new Set(words.trim().split(/\s+/));

/** Rows of keys and other orders that fingers and eyes run along, in either direction. */
export const walks: readonly string[] = [
    'abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz',
    '01234567890123456789',
    'qwertyuiop[]',
    'qwertzuiop',
    'azertyuiop',
    'asdfghjkl;',
    'zxcvbnm,./',
    'yxcvbnm',
    'qwertyuiopasdfghjklzxcvbnm',
    'qwertzuiopasdfghjklyxcvbnm',
    '1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p',
    '1q2w3e4r5t6y7u8i9o0p',
    'q1w2e3r4t5y6u7i8o9p0',
    'qazwsxedcrfvtgbyhnujmikolp',
    '!@#$%^&*()_+',
    '1234567890-=',
    '147258369',
    '159753',
    '123qweasdzxc',
    '!qaz@wsx#edc$rfv%tgb'
];
