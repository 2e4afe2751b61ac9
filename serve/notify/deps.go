package notify

import _ "github.com/nicholas-fedor/shoutrrr"
